import { parseTargetId } from "../target/target-id.ts";

/** Common file systems have names of up to 255 bytes; this leaves room for an extension. */
const NAME_LIMIT = 240;
/** Names that Windows keeps for devices, with any extension. */
const DEVICE_NAME = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?$/i;

/**
 * A key or target of an archive as a relative path that stays below the folder it is joined to, on every system:
 * what could lead out of it, or be no name at all, is written as `%XX`. Different texts give different paths.
 */
export function safeRelativePath(text: string): string {
  return text.split("/").map(safeName).join("/");
}

/**
 * The name of a target's folder, with `_` for `:`. What is no target id is written so that it cannot be taken for one.
 */
export function targetFolderName(target: string): string {
  if (parseTargetId(target)) return safeName(target.replaceAll(":", "_"));
  return safeName(target).replace(/[/_]/g, escapeCharacter);
}

/** Whether a program that joins the text to a folder and writes there could write elsewhere, on some system. */
export function leavesFolder(text: string): boolean {
  const parts = text.split(/[/\\]/);
  return parts.includes("..") || parts[0] === "" || /^[a-z]:/i.test(text) || text.includes("\0");
}

function safeName(name: string): string {
  if (name === "" || /^\.+$/.test(name)) return name === "" ? "%" : name.replaceAll(".", "%2E");
  // `%` itself is escaped so that no two names become one; `:` and `\` mean something in paths of Windows.
  let safe = name.replace(/[%\\:*?"<>|\u0000-\u001f\u007f]|[. ]$/g, escapeCharacter);
  if (DEVICE_NAME.test(safe)) safe = escapeCharacter(safe[0] ?? "") + safe.slice(1);
  return new TextEncoder().encode(safe).length <= NAME_LIMIT ? safe : safe.slice(0, 60) + hashedTail(safe);
}

function escapeCharacter(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
}

/** Keeps long names apart: two 32-bit FNV-1a hashes with different beginnings. */
function hashedTail(text: string): string {
  const hash = (seed: number): string => {
    let value = seed;
    for (let index = 0; index < text.length; index++)
      value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
    return (value >>> 0).toString(16).padStart(8, "0");
  };
  return `%~${hash(0x811c9dc5)}${hash(0x9e3779b9)}`;
}
