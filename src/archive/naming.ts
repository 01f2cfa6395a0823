import { parseTargetId } from "../target/target-id.ts";

/**
 * `GROUP_TARGET.kpack`, as ROCm's tools name an archive of one target. What would make it a path is written as `%XX`:
 * a target's name comes from the input.
 */
export function archiveFileName(groupName: string, target: string): string {
  return `${groupName}_${target}.kpack`.replace(/[/\\\0]/g, (character) => {
    return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
  });
}

/**
 * A group's name from a file's or folder's: `librocsparse.so.0.1` and `rocsparse.dll` give `rocsparse`, `library` itself.
 * `path` has `/` as separator.
 */
export function defaultGroupName(path: string): string {
  const name =
    path
      .split("/")
      .filter((part) => part !== "" && part !== "." && part !== "..")
      .at(-1) ?? "";
  const stem = name
    .replace(/^lib(?=[^.].*\.(?:so|dll|a)\b)/i, "")
    .replace(/\.(?:so(?:\.[\d.]+)?|dll|exe|a|o|obj|hsaco|co|hipfb|kpack)$/i, "");
  return stem === "" ? "kernels" : stem;
}

/**
 * The label for a set of targets: a target by itself, a processor for its flag variants, `gfx110X` for processors
 * that begin alike, else `mixed`.
 */
export function defaultFamily(targets: readonly string[]): string {
  const [only] = targets;
  if (only === undefined) return "none";
  if (targets.length === 1) return only;
  const processors = targets.map((target) => parseTargetId(target)?.processor ?? target);
  const [first = ""] = processors;
  if (processors.every((processor) => processor === first)) return first;
  let length = 0;
  while (processors.every((processor) => length < processor.length && processor[length] === first[length]))
    length++;
  const prefix = first.slice(0, length).replace(/-$/, "");
  return prefix.length > "gfx".length ? `${prefix}X` : "mixed";
}

/**
 * The binary key for a file, without its index: the path with what names the target taken out, so that the files for
 * several targets share a key. `lib/library/gemm_gfx90a-xnack+.co` for `gfx90a:xnack+` gives `lib/library/gemm.co`,
 * `gfx90a_xnack-/012.hsaco` gives `012.hsaco`.
 *
 * @param path relative, with `/` as separator
 */
export function binaryKeyPath(path: string, target: string): string {
  const { processor, features } = parseTargetId(target) ?? { processor: target, features: [] };
  // The flags may stand in any order and behind `:`, `_` or `-`; a name may also leave them out.
  const flags = features.map(({ name, on }) => `${escapeRegExp(name)}${on ? "\\+" : "-"}`).join("|");
  const suffix = flags === "" ? "" : `(?:[:_-](?:${flags}))*`;
  const pattern = new RegExp(`(^|[-_.])${escapeRegExp(processor)}${suffix}(?=$|[-_.])`, "i");
  const parts = path
    .split("/")
    .map((part) => part.replace(pattern, "").replace(part.search(pattern) === 0 ? /^[-_]+/ : /^$/, ""))
    .filter((part) => part !== "");
  return parts.length > 0 ? parts.join("/") : path;
}

function escapeRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
