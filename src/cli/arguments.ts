import { InvalidArgumentError, Option } from "@commander-js/extra-typings";
import { compatibleTargets } from "../loader/isa.ts";

/** Parsers and options that several commands share. */

export function parseList(value: string, previous: readonly string[] | undefined): readonly string[] {
  const items = value
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
  if (items.length === 0) throw new InvalidArgumentError("Expected names separated by commas.");
  return [...(previous ?? []), ...items];
}

export function parseJobs(value: string): number {
  return parseInteger(value, 1, 1024);
}

export function parseLevel(value: string): number {
  return parseInteger(value, 1, 22);
}

function parseInteger(value: string, least: number, most: number): number {
  const number = /^\d+$/.test(value) ? Number(value) : Number.NaN;
  if (number >= least && number <= most) return number;
  throw new InvalidArgumentError(`Expected a whole number from ${least} to ${most}.`);
}

export const jsonOption = new Option("--json", "print one JSON document instead of text");
export const quietOption = new Option("-q, --quiet", "print no progress and no notes");
export const jobsOption = new Option(
  "-j, --jobs <n>",
  "kernels worked on at once (default: processors + 1)",
).argParser(parseJobs);
export const targetsOption = new Option(
  "-t, --targets <list>",
  "only these targets: gfx90a takes every flag variant, gfx90a:xnack- just that one",
).argParser(parseList);

/** ISAs as the runtime names them. */
export function parseIsas(value: string, previous: readonly string[] | undefined): readonly string[] {
  const isas = parseList(value, previous);
  for (const isa of isas) {
    try {
      compatibleTargets(isa);
    } catch (error) {
      throw new InvalidArgumentError(error instanceof Error ? `${error.message}.` : String(error));
    }
  }
  return isas;
}

/** Where a file or folder is written. */
export function parseOutput(value: string): string {
  if (value === "") throw new InvalidArgumentError("It names no file.");
  if (value === "-")
    throw new InvalidArgumentError('This cannot go to standard output; "./-" is a file of that name.');
  return value;
}

/** A name that becomes part of file names. */
export function parseName(value: string): string {
  if (value.trim() === "" || /[/\\\p{Cc}]/u.test(value))
    throw new InvalidArgumentError(
      "A name has at least one character, and no slashes or control characters.",
    );
  return value;
}
