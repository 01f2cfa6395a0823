import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { createFile } from "../../src/node.ts";
import { isTemporaryName } from "../../src/sink/file-sink.node.ts";
import { kpackError } from "../support/expect-error.ts";
import { filesBelow, tempFolder } from "../support/temp-folder.ts";

describe("the path of a file to be written", () => {
  for (const name of ["x".repeat(255), "é".repeat(127), "a"]) {
    it(`may have a name of ${Buffer.byteLength(name)} bytes`, async (context) => {
      const folder = tempFolder(context);
      await using sink = await createFile(join(folder, name));
      const [temporary = ""] = readdirSync(folder);
      assert.ok(isTemporaryName(temporary), temporary);
      await sink.write(Uint8Array.of(1));
      await sink.commit();
      assert.deepEqual(readdirSync(folder), [name]);
    });
  }

  it("is refused at once where no file can get it", async (context) => {
    const folder = tempFolder(context);
    mkdirSync(join(folder, "folder"));
    symlinkSync("folder", join(folder, "link"));
    writeFileSync(join(folder, "file"), "");
    const wrong = {
      folder: /it is a folder/,
      link: /it is a folder/,
      "new/": /it names no file/,
      "file/below": /ENOTDIR/,
      ["x".repeat(256)]: /ENAMETOOLONG/,
    };
    for (const [name, message] of Object.entries(wrong)) {
      const error = await kpackError(async () => await createFile(`${folder}/${name}`), "WRITE_FAILED");
      assert.match(error.message, message);
    }
    await kpackError(async () => await createFile(""), "WRITE_FAILED");
    assert.deepEqual(filesBelow(folder), ["file", "link"]);
  });

  it("is refused where a device stands, which a rename would replace", async () => {
    if (!existsSync("/dev/null")) return;
    const error = await kpackError(async () => await createFile("/dev/null"), "WRITE_FAILED");
    assert.match(error.message, /no regular file/);
  });

  it("may be that of a file or of a link to one, which is replaced", async (context) => {
    const folder = tempFolder(context);
    writeFileSync(join(folder, "file"), "old");
    symlinkSync("file", join(folder, "link"));
    for (const name of ["link", "file"]) {
      await using sink = await createFile(join(folder, name));
      await sink.write(Uint8Array.of(65));
      await sink.commit();
      assert.equal(readFileSync(join(folder, name), "utf8"), "A");
    }
  });
});
