import { FormatError } from "../errors/errors.ts";
import { decodeValue } from "../msgpack/message-pack-decode.ts";
import type { SchemeFields } from "../scheme/scheme.ts";
import type { Toc } from "./toc.ts";

/** The TOC's fields beside the format's own, as a scheme gets them; those in `without` as if they were not there. */
export function schemeFields(
  toc: Toc,
  file: string,
  tocOffset: number,
  without: readonly string[] = [],
): SchemeFields {
  const present = toc.fields.filter(({ name }) => !without.includes(name));
  const positions = new Map(present.map(({ name, start }) => [name, start]));
  return {
    has: (name) => positions.has(name),
    get: (name) => {
      const position = positions.get(name);
      return position === undefined ? undefined : decodeValue(toc.readerAt(position), name);
    },
    reader: (name) => {
      const position = positions.get(name);
      if (position !== undefined) return toc.readerAt(position);
      throw new FormatError("MISSING_KEY", "the TOC lacks a field that the compression scheme needs", {
        file,
        field: name,
        offset: tocOffset,
      });
    },
  };
}
