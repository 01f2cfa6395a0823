import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decodeMetadataNote, type ElfNote, parseNotes } from "../../src/code-object/notes.ts";
import { isKpackError } from "../../src/errors/errors.ts";
import { concat, map, pack } from "../support/raw-msgpack.ts";
import { kpackError } from "../support/expect-error.ts";

function noteBytes(owner: string, type: number, description: Uint8Array | string): Uint8Array {
  const text = (value: string): Uint8Array => new TextEncoder().encode(value);
  const padded = (bytes: Uint8Array): Uint8Array => concat(bytes, new Uint8Array(-bytes.length & 3));
  const [name, content] = [
    text(`${owner}\0`),
    typeof description === "string" ? text(description) : description,
  ];
  const head = new Uint8Array(12);
  const view = new DataView(head.buffer);
  view.setUint32(0, name.length, true);
  view.setUint32(4, content.length, true);
  view.setUint32(8, type, true);
  return concat(head, padded(name), padded(content));
}

const v2 = `---
Version: [ 1, 0 ]
Kernels:
  - Name: k
    SymbolName: 'k@kd'
    CodeProps: { NumVGPRs: 3 }
...
`;

async function decode(...notes: readonly Uint8Array[]): ReturnType<typeof decodeMetadataNote> {
  return await decodeMetadataNote(parseNotes(concat(...notes), { base: 0x200 }), "x");
}

describe("notes", () => {
  it("are read one after another, with their padding", () => {
    const bytes = concat(noteBytes("AMD", 1, "abc"), noteBytes("AMDGPU", 32, "\u0080"), new Uint8Array(8));
    const notes = parseNotes(bytes, { base: 0x200 });
    assert.deepEqual(
      notes.map(({ owner, type, description, offset }: ElfNote) => [owner, type, description.length, offset]),
      [
        ["AMD", 1, 3, 0x210],
        ["AMDGPU", 32, 2, 0x228],
      ],
    );
  });

  it("that reach behind their segment are an error", () => {
    const bytes = noteBytes("AMDGPU", 32, new Uint8Array(64)).subarray(0, 40);
    assert.throws(
      () => parseNotes(bytes, { file: "x", base: 0x200 }),
      (error) => isKpackError(error) && error.code === "TRUNCATED" && error.field === "note: description",
    );
  });
});

describe("the metadata note", () => {
  it("is MessagePack since version 3", async () => {
    const note = await decode(
      noteBytes("AMD", 10, v2),
      noteBytes("AMDGPU", 32, pack(map(["amdhsa.kernels", []]))),
    );
    assert.equal(note?.form, "messagepack");
    assert.deepEqual([...(note?.root ?? [])], [["amdhsa.kernels", []]]);
  });

  it("is YAML in version 2, with the target in another note", async () => {
    const note = await decode(noteBytes("AMD", 11, "amdgcn-amd-amdhsa--gfx803\0"), noteBytes("AMD", 10, v2));
    assert.equal(note?.form, "yaml");
    assert.equal(note?.targetText, "amdgcn-amd-amdhsa--gfx803");
    assert.deepEqual(note?.root.get("Version"), [1, 0]);
  });

  it("may be missing", async () => {
    assert.equal(await decode(noteBytes("GNU", 32, "x")), undefined);
  });

  it("is an error where it is damaged", async () => {
    const deepYaml = `a: ${"[".repeat(20_000)}`;
    const bomb = `a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n`;
    await kpackError(() => decode(noteBytes("AMD", 10, "a: [1")), "MALFORMED_TEXT", /^metadata$/);
    await kpackError(() => decode(noteBytes("AMD", 10, deepYaml)), "MALFORMED_TEXT");
    await kpackError(() => decode(noteBytes("AMD", 10, bomb)), "MALFORMED_TEXT");
    await kpackError(() => decode(noteBytes("AMD", 10, "- 1\n- 2\n")), "WRONG_TYPE");
    await kpackError(() => decode(noteBytes("AMD", 10, Uint8Array.of(0xff, 0xfe))), "MALFORMED_TEXT");
    await kpackError(
      () => decode(noteBytes("AMDGPU", 32, Uint8Array.of(0xdf, 0xff, 0xff, 0xff, 0xff))),
      "COUNT_TOO_LARGE",
    );
    await kpackError(() => decode(noteBytes("AMDGPU", 32, Uint8Array.of(0xc1))), "MALFORMED_MSGPACK");
    await kpackError(() => decode(noteBytes("AMDGPU", 32, Uint8Array.of(1))), "WRONG_TYPE");
  });
});
