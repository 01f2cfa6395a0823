import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeCodecs } from "../../src/codec/node-codecs.node.ts";
import type { Finding } from "../../src/errors/finding.ts";
import { type DeviceCode, readDeviceCode } from "../../src/host/device-code.ts";
import { memorySource } from "../../src/source/memory-source.ts";
import { buildBundle, compressBundle, concat, padded } from "../bundle/bundle-builder.ts";
import { fixture, fixtureBytes } from "../bundle/host-fixtures.ts";
import { buildHost } from "./elf-builder.ts";

const GFX906 = "hipv4-amdgcn-amd-amdhsa--gfx906";
const kernel = fixtureBytes("A/hsaco/vadd_gfx906.hsaco");

async function read(bytes: Uint8Array): Promise<DeviceCode & { readonly findings: readonly Finding[] }> {
  const findings: Finding[] = [];
  const onFinding = (finding: Finding): number => findings.push(finding);
  return {
    ...(await readDeviceCode(memorySource(bytes, "app"), { codecs: nodeCodecs, onFinding })),
    findings,
  };
}

test("tens of thousands of bundles and wrappers take no time that grows with their product", async () => {
  const count = 30_000;
  const bundle = padded(buildBundle([{ id: "hip-amdgcn-amd-amdhsa-gfx906", content: "x" }]), 16);
  const offsets = Array.from({ length: count }, (_, index) => index * bundle.length);
  const { bytes } = buildHost(concat(...offsets.map(() => bundle)), offsets);
  const start = performance.now();
  const { items } = await read(bytes);
  assert.deepEqual(
    items.map(({ keyIndexes }) => keyIndexes),
    offsets.map((_, index) => [index]),
  );
  assert.ok(performance.now() - start < 4000, `${performance.now() - start} ms`);
});

test("wrappers that share a bundle all name it", async () => {
  const bundle = padded(buildBundle([{ id: GFX906, content: kernel }]));
  const { bytes } = buildHost(concat(bundle, bundle), [bundle.length, 0, bundle.length]);
  assert.deepEqual(
    (await read(bytes)).items.map(({ keyIndexes }) => keyIndexes),
    [[1], [0, 2]],
  );
});

test("of a compressed container with several bundles only the first has keys, and the others are reported", async () => {
  const bundle = buildBundle([{ id: GFX906, content: kernel }]);
  const container = padded(compressBundle(concat(bundle, bundle), { version: 3 }));
  const { bytes } = buildHost(concat(container, container), [container.length]);
  const { items, findings } = await read(bytes);
  assert.deepEqual(
    items.map(({ keyIndexes }) => keyIndexes),
    [[], [], [0], []],
  );
  assert.deepEqual(
    findings.map(({ code, field, severity }) => `${severity} ${code} ${field}`),
    [0, 1, 3].map((index) => `warning BUNDLE_WITHOUT_WRAPPER bundle[${index}]`),
  );
  assert.match(findings[1]?.message ?? "", /no wrapper can point/);
});

test("what a bundle has for the host is an item of its own kind", async () => {
  const code = await readDeviceCode(fixture("B/ok/plain_host_payload.hipfb"), { codecs: nodeCodecs });
  const host = code.items.filter(({ isHost }) => isHost);
  assert.equal(host.length, 1);
  const [item] = host;
  assert.ok(item);
  assert.ok(item.id.startsWith("host-"));
  assert.deepEqual([item.target, item.isHipCodeObject], [item.id, false]);
  assert.equal((await item.kernel.read()).length, item.kernel.size);
});
