import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { requireCodec } from "../../src/codec/codec.ts";
import { nodeCodecs } from "../../src/codec/node-codecs.node.ts";
import type { Finding } from "../../src/errors/finding.ts";
import { listFile } from "../../src/operations/list.node.ts";
import { unbundle } from "../../src/operations/unbundle.node.ts";
import { buildBundle, compressBundle, concat, padded } from "../bundle/bundle-builder.ts";
import { patched } from "../bundle/host-fixtures.ts";
import { buildHost } from "../host/elf-builder.ts";
import { fixturePath } from "../support/archive-fixtures.ts";
import { kpackError } from "../support/expect-error.ts";
import { entriesOf, fixture, packed, writeTree } from "../support/pack-inputs.ts";
import { filesBelow, tempFolder } from "../support/temp-folder.ts";

const GFX906 = "hipv4-amdgcn-amd-amdhsa--gfx906";
const GFX942 = "hipv4-amdgcn-amd-amdhsa--gfx942";
const kernel906 = await fixture("A/hsaco/vadd_gfx906.hsaco");
const kernel942 = await fixture("A/hsaco/vadd_gfx942.hsaco");

describe("pack of bundles", () => {
  it("puts into `left` what no key leads to, and says why", async (context) => {
    const folder = tempFolder(context);
    const [first, second] = [
      buildBundle([{ id: GFX906, content: kernel906 }]),
      buildBundle([{ id: GFX942, content: kernel942 }]),
    ];
    const container = padded(compressBundle(concat(first, second), { version: 3 }));
    const { bytes } = buildHost(concat(container, padded(second)), [0]);
    writeTree(folder, { app: bytes, "lost/app": buildHost(first, [8]).bytes });
    const output = join(folder, "out.kpack");
    const { plan, findings } = await packed({ inputs: [join(folder, "app")], output });
    assert.deepEqual(await entriesOf(output), ["app#0 gfx906 0"]);
    assert.deepEqual(
      plan.left.map(({ bundleIndex, target }) => `${bundleIndex} ${target}`),
      ["1 gfx942", "2 gfx942"],
    );
    assert.deepEqual(
      findings.map(({ code, field }) => `${code} ${field}`),
      ["BUNDLE_WITHOUT_WRAPPER bundle[1]", "BUNDLE_WITHOUT_WRAPPER bundle[2]"],
    );
    const error = await kpackError(
      async () => await packed({ inputs: [join(folder, "lost", "app")], output: join(folder, "no.kpack") }),
      "NOTHING_FOUND",
    );
    assert.match(error.hint ?? "", /No wrapper points/);
  });

  it("reports a compressed bundle whose hash is wrong, and so do list and unbundle", async (context) => {
    const folder = tempFolder(context);
    const bytes = compressBundle(buildBundle([{ id: GFX906, content: kernel906 }]), { version: 3 });
    writeTree(folder, { "x.hipfb": patched(bytes, [[24, 8, 1]]) });
    const input = join(folder, "x.hipfb");
    const codes = (findings: readonly Finding[]): readonly string[] =>
      findings.map(({ severity, code, file }) => `${severity} ${code} ${file}`);
    const wanted = [`warning BUNDLE_HASH_MISMATCH ${input}`];
    assert.deepEqual(
      codes((await packed({ inputs: [input], output: join(folder, "x.kpack"), verify: true })).findings),
      wanted,
    );
    assert.deepEqual(codes((await listFile(input)).findings), wanted);
    const findings: Finding[] = [];
    await unbundle([input], join(folder, "out"), { onFinding: (finding) => findings.push(finding) });
    assert.deepEqual(codes(findings), wanted);
  });

  it("decompresses a container twice at most, and once when few of them follow each other", async (context) => {
    const folder = tempFolder(context);
    const container = (index: number): Uint8Array =>
      compressBundle(
        buildBundle([
          { id: GFX906, content: concat(kernel906, new Uint8Array([index])) },
          { id: GFX942, content: concat(kernel942, new Uint8Array([index])) },
        ]),
        { version: 3 },
      );
    const containers = Array.from({ length: 12 }, (_, index) => container(index));
    writeTree(folder, {
      "few.hipfb": concat(...containers.slice(0, 2)),
      "many.hipfb": concat(...containers),
    });
    const decompress = context.mock.method(requireCodec(nodeCodecs, "zstd"), "decompress");
    for (const [name, most] of [
      ["few", 2],
      ["many", 24],
    ] as const) {
      decompress.mock.resetCalls();
      await packed({ inputs: [join(folder, `${name}.hipfb`)], output: join(folder, `${name}.kpack`) });
      assert.equal(decompress.mock.callCount(), most, name);
    }
  });

  it("takes what is for the host only when its whole id is named", async (context) => {
    const folder = tempFolder(context);
    const input = fixturePath("B/ok/plain_host_payload.hipfb");
    const listedIds = async (targets?: readonly string[]): Promise<readonly string[]> => {
      const listing = await listFile(input, { targets });
      return listing.kind === "archive" ? [] : listing.entries.map(({ id }) => id);
    };
    const ids = await listedIds();
    const host = ids.find((id) => id.startsWith("host-")) ?? assert.fail(ids.join());
    assert.deepEqual(await listedIds([host]), [host]);
    const { plan } = await packed({ inputs: [input], output: join(folder, "out.kpack") });
    assert.deepEqual(
      plan.left.filter(({ isHost }) => isHost).map(({ id }) => id),
      [host],
    );
    const named = await packed({
      inputs: [input],
      output: join(folder, "host.kpack"),
      targets: [host],
      verify: true,
    });
    assert.deepEqual(
      named.plan.kernels.map(({ target }) => target),
      [host],
    );
    const all = await unbundle([input], join(folder, "all"));
    assert.ok(all.every(({ id }) => id !== host));
    const files = await unbundle([input], join(folder, "host"), { targets: [host] });
    assert.deepEqual(
      files.map(({ id }) => id),
      [host],
    );
    assert.equal(filesBelow(join(folder, "host")).length, 1);
  });

  it("refuses more entries than an archive can have", async (context) => {
    const folder = tempFolder(context);
    const ids = Array.from({ length: 3000 }, (_, index) => `${GFX906}:f${index}+`);
    // All entries are the same bytes.
    const table = 32 + ids.reduce((sum, id) => sum + 24 + id.length, 0);
    const bundle = concat(
      buildBundle(ids.map((id) => ({ id, offset: table, size: kernel906.length }))),
      kernel906,
    );
    writeTree(folder, {
      app: buildHost(
        bundle,
        Array.from({ length: 2000 }, () => 0),
      ).bytes,
    });
    await kpackError(
      async () => await packed({ inputs: [join(folder, "app")], output: join(folder, "out.kpack") }),
      "LIMIT_EXCEEDED",
    );
  });
});
