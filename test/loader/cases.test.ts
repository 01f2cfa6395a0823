import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { HipkMetadata } from "../../src/host/hipk-metadata.ts";
import type { LoaderBehaviour } from "../../src/loader/archive-search.ts";
import { type LoaderVariables, parseLoaderEnvironment } from "../../src/loader/environment.ts";
import { formatStatus } from "../../src/loader/loader-status.ts";
import { remedyFor } from "../../src/loader/remedy.ts";
import { type Resolution, resolveKernel } from "../../src/loader/resolve.ts";
import { NodeLoaderFileSystem } from "../../src/loader/resolve.node.ts";
import { archiveBytes, codeObject, keys, TemporaryTree } from "../support/trees.ts";
import { sha256 } from "../support/kernels.ts";

/** The table "Loader" of the cases that every loader is asked about. */

const LIBRARY = "lib/libtorch_hip.so";
const METADATA: HipkMetadata = { kernelName: LIBRARY, searchPaths: ["../.kpack/torch_@GFXARCH@.kpack"] };
const OLD: LoaderBehaviour = "before-2026-08";
const NOW: LoaderBehaviour = "current";

let tree: TemporaryTree;

before(async () => {
  tree = new TemporaryTree();
  tree.write(LIBRARY, "");
  const add = async (target: string, count: number): Promise<void> => {
    tree.write(
      `.kpack/torch_${target}.kpack`,
      await archiveBytes({ targets: { [target]: keys(LIBRARY, count) } }),
    );
  };
  await add("gfx90a", 60);
  await add("gfx90a:xnack-", 1);
  await add("gfx942:sramecc+:xnack-", 1);
  await add("gfx1100", 1);
  await add("gfx12-generic", 1);
  tree.write(".kpack/torch_gfx1101.kpack", "KPAK");
});

after(() => tree[Symbol.dispose]());

interface Request {
  readonly isas: readonly string[];
  readonly index?: number;
  readonly behaviour?: LoaderBehaviour;
  readonly variables?: LoaderVariables;
  readonly metadata?: HipkMetadata;
  readonly binary?: string;
}

async function ask(request: Request): Promise<Resolution & { readonly remedy: string | undefined }> {
  await using fileSystem = new NodeLoaderFileSystem();
  const full = {
    binaryPath: tree.at(request.binary ?? LIBRARY),
    metadata: request.metadata ?? METADATA,
    isas: request.isas,
    index: request.index ?? 0,
    behaviour: request.behaviour ?? NOW,
    environment: parseLoaderEnvironment(request.variables ?? {}, "posix"),
    workingFolder: tree.path,
  };
  const resolution = await resolveKernel(full, fileSystem);
  const remedy = await remedyFor({ ...full, search: resolution, answer: resolution.answer }, fileSystem);
  return { ...resolution, remedy };
}

/** The winner's file name without the group, or the failure. */
async function outcome(request: Request): Promise<string> {
  const { answer } = await ask(request);
  if (answer.failure) return formatStatus(answer.failure.status);
  return (answer.kernel?.archive ?? "").replace(/^.*torch_|\.kpack$/g, "");
}

test("a base archive has what its xnack- part lacks, and before August 2026 it was not asked", async () => {
  const isas = ["gfx90a:sramecc+:xnack-"];
  assert.equal(await outcome({ isas, index: 57, behaviour: OLD }), "KPACK_ERROR_KERNEL_NOT_FOUND (5)");
  assert.equal(await outcome({ isas, index: 57, behaviour: NOW }), "gfx90a");
  assert.equal(await outcome({ isas, index: 0, behaviour: OLD }), "gfx90a:xnack-");
  assert.equal(await outcome({ isas, index: 0, behaviour: NOW }), "gfx90a:xnack-");
  const old = await ask({ isas, index: 57, behaviour: OLD });
  assert.deepEqual(
    old.answer.candidates.map(({ target, outcome: how }) => [target, how]),
    [
      ["gfx90a:xnack-", "failed"],
      ["gfx90a", "not-tried"],
    ],
  );
  assert.match(old.remedy ?? "", /later than 7\.14.*torch_gfx90a:xnack-\.kpack/);
});

for (const behaviour of [OLD, NOW]) {
  test(`flags and their order have to be those of the archive (${behaviour})`, async () => {
    assert.equal(await outcome({ isas: ["gfx942:sramecc+:xnack-"], behaviour }), "gfx942:sramecc+:xnack-");
    const prefixed = ["amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-"];
    assert.equal(await outcome({ isas: prefixed, behaviour }), "gfx942:sramecc+:xnack-");
    for (const isa of ["gfx942:xnack-:sramecc+", "gfx942"]) {
      assert.equal(await outcome({ isas: [isa], behaviour }), "KPACK_ERROR_ARCHIVE_NOT_FOUND (13)");
    }
  });

  test(`a file that cannot be opened is skipped (${behaviour})`, async () => {
    assert.equal(await outcome({ isas: ["gfx1101"], behaviour }), "KPACK_ERROR_ARCHIVE_NOT_FOUND (13)");
    assert.equal(await outcome({ isas: ["gfx1101", "gfx1100"], behaviour }), "gfx1100");
    const { paths, remedy } = await ask({ isas: ["gfx1101"], behaviour });
    assert.deepEqual(
      paths.map(({ fate, status }) => [fate, status?.number]),
      [["cannot-be-opened", 3]],
    );
    assert.match(remedy ?? "", /fresh copy of .*torch_gfx1101\.kpack/);
  });

  test(`a generic archive serves a GPU that lists its generic ISA (${behaviour})`, async () => {
    assert.equal(await outcome({ isas: ["gfx1200", "gfx12-generic"], behaviour }), "gfx12-generic");
  });

  test(`ROCM_KPACK_PATH splits inside of a name with a colon (${behaviour})`, async () => {
    const variables = { ROCM_KPACK_PATH: tree.at(".kpack/torch_gfx90a:xnack-.kpack") };
    const isas = ["gfx90a:sramecc+:xnack-"];
    assert.equal(await outcome({ isas, behaviour, variables }), "KPACK_ERROR_ARCHIVE_NOT_FOUND (13)");
    const { remedy } = await ask({ isas, behaviour, variables });
    assert.match(remedy ?? "", /splits at each ":".*torch_gfx90a:xnack-\.kpack/);
  });

  test(`ROCM_KPACK_DISABLE refuses every load unless it begins with 0 (${behaviour})`, async () => {
    const isas = ["gfx1100"];
    for (const value of ["1", "no", " "]) {
      const variables = { ROCM_KPACK_DISABLE: value };
      assert.equal(await outcome({ isas, behaviour, variables }), "KPACK_ERROR_NOT_IMPLEMENTED (8)");
    }
    for (const value of ["0", "", "0yes"]) {
      assert.equal(await outcome({ isas, behaviour, variables: { ROCM_KPACK_DISABLE: value } }), "gfx1100");
    }
  });
}

test("the winner comes with its ordinal, size and hashes", async () => {
  const { answer } = await ask({ isas: ["gfx90a:sramecc+:xnack-"], index: 57 });
  const bytes = codeObject("gfx90a", `${LIBRARY}#57`);
  assert.equal(answer.kernel?.ordinal, 57);
  assert.equal(answer.kernel.size, bytes.length);
  assert.equal(answer.kernel.sha256, sha256(bytes));
  assert.equal(answer.kernel.hashMatches, true);
});

test("prefix paths come first, and relative ones count from the working folder", async () => {
  const variables = { ROCM_KPACK_PATH_PREFIX: `::.kpack/torch_gfx1100.kpack:nowhere.kpack` };
  const { paths, archives, answer } = await ask({ isas: ["gfx1100"], variables });
  assert.deepEqual(
    paths.map(({ origin, fate, openedBefore }) => [origin, fate, openedBefore]),
    [
      ["prefix", "opened", false],
      ["prefix", "missing", false],
      ["embedded", "opened", true],
    ],
  );
  assert.equal(archives.length, 2);
  assert.equal(answer.candidates.length, 2, "an archive counts once for each path");
});

test("what is no regular file is skipped", async () => {
  tree.write("odd/torch_gfx1100.kpack/file", "");
  const metadata = { kernelName: LIBRARY, searchPaths: ["../odd/torch_@GFXARCH@.kpack"] };
  const { paths, answer, remedy } = await ask({ isas: ["gfx1100"], metadata });
  assert.equal(paths[0]?.fate, "no-regular-file");
  assert.equal(answer.failure?.status.number, 13);
  assert.match(remedy ?? "", /it is a folder/);
});

test("`..` behind a linked folder is the parent of the link's target", async () => {
  tree.write("elsewhere/lib/libtorch_hip.so", "");
  tree.link("linked", "elsewhere/lib");
  tree.write(
    "elsewhere/.kpack/torch_gfx1100.kpack",
    await archiveBytes({ targets: { gfx1100: keys(LIBRARY, 1) } }),
  );
  for (const behaviour of ["current", "hrx"] as const) {
    const { answer } = await ask({ isas: ["gfx1100"], binary: "linked/libtorch_hip.so", behaviour });
    assert.match(answer.kernel?.archive ?? "", /elsewhere|linked/);
  }
});

test("`..` behind a folder that is missing is left to the kernel by HRX alone", async () => {
  const metadata = { kernelName: LIBRARY, searchPaths: ["missing/../../.kpack/torch_@GFXARCH@.kpack"] };
  assert.equal(await outcome({ isas: ["gfx1100"], metadata }), "gfx1100");
  assert.equal(
    await outcome({ isas: ["gfx1100"], metadata, behaviour: "hrx" }),
    "KPACK_ERROR_ARCHIVE_NOT_FOUND (13)",
  );
});

test("only the first placeholder of a path is replaced", async () => {
  const metadata = { kernelName: LIBRARY, searchPaths: ["../@GFXARCH@/@GFXARCH@.kpack"] };
  const { paths } = await ask({ isas: ["gfx1100"], metadata });
  assert.deepEqual(
    paths.map(({ path }) => path.slice(tree.path.length)),
    ["/gfx1100/@GFXARCH@.kpack"],
  );
});

test("a missing folder beside the library has to be copied, a missing device package installed", async () => {
  tree.write("copied/lib/libtorch_hip.so", "");
  const copied = await ask({ isas: ["gfx1100"], binary: "copied/lib/libtorch_hip.so" });
  assert.match(copied.remedy ?? "", /^Copy the folder \.kpack .* to .*copied\/\.kpack/);
  const inTorch = "venv/lib/python3.13/site-packages/torch/lib/libtorch_hip.so";
  tree.write(inTorch, "");
  const torch = await ask({ isas: ["gfx1201"], binary: inTorch });
  assert.match(torch.remedy ?? "", /torch\[device-gfx1201\]".*amd-torch-device-gfx1201/);
  const inRocm = "venv/lib/python3.13/site-packages/_rocm_sdk_libraries/lib/librocblas.so.5";
  tree.write(inRocm, "");
  const rocm = await ask({ isas: ["gfx1201:xnack-"], binary: inRocm });
  assert.match(rocm.remedy ?? "", /rocm\[libraries,device-gfx1201\]/);
  const other = await ask({ isas: ["gfx1030"] });
  assert.match(other.remedy ?? "", /copy torch_gfx1030\.kpack of the same build to .*\.kpack/);
});
