import { genericTargetsOf, knowsSramecc, knowsXnack, knownProcessors } from "../target/processors.ts";
import { parseTargetId, sameTarget } from "../target/target-id.ts";
import { ROCM_SCHEMES } from "./archive-search.ts";
import { stripIsaPrefix } from "./isa.ts";
import type { LoaderFileSystem } from "./loader-file-system.ts";
import { heldInstead } from "./mislabelled.ts";
import { oncePerSearch, type RemedyContext } from "./remedy-context.ts";
import { fileNameOf, folderOf, TARGET_PLACEHOLDER } from "./search-paths.ts";
import { remedyForSplitName } from "./variable-remedy.ts";

/** Failures to find something, which may be in an archive that the environment hides. */
const MISSES: ReadonlySet<string> = new Set([
  "KPACK_ERROR_ARCHIVE_NOT_FOUND",
  "KPACK_ERROR_ARCH_NOT_FOUND",
  "KPACK_ERROR_KERNEL_NOT_FOUND",
]);

/** One sentence on what to do about a failure; undefined when there is none. */
export async function remedyFor(
  context: RemedyContext,
  fileSystem: LoaderFileSystem,
): Promise<string | undefined> {
  const { failure } = context.answer;
  if (failure === undefined) return undefined;
  if (MISSES.has(failure.status.name)) {
    const split = await remedyForSplitName(context, fileSystem);
    if (split !== undefined) return split;
  }
  switch (failure.status.name) {
    case "KPACK_ERROR_NOT_IMPLEMENTED":
      return "Unset ROCM_KPACK_DISABLE, or set it to 0: as long as it is set, every load is refused.";
    case "KPACK_ERROR_ARCHIVE_NOT_FOUND":
      return await remedyForMissingArchive(context, fileSystem);
    case "KPACK_ERROR_ARCH_NOT_FOUND":
      return await remedyForMissingTarget(context, fileSystem);
    case "KPACK_ERROR_KERNEL_NOT_FOUND":
      return remedyForMissingKernel(context);
    case "HRX_LIMIT":
      return "Use fewer archives, paths or flags: HRX gives up instead of leaving some out.";
    default: {
      const broken =
        context.answer.candidates.findLast(({ outcome }) => outcome === "failed")?.archive ??
        context.search.paths.find(({ fate }) => fate === "cannot-be-opened")?.path;
      return `Get a fresh copy of ${broken ?? "the archive"}; "kpack verify" says what is wrong with this one.`;
    }
  }
}

/** What HIPK metadata that cannot be read asks for. */
export const METADATA_REMEDY =
  "Install the library anew: its HIPK metadata is damaged, and no archive can be found without it.";

const remedyForMissingArchive = oncePerSearch(async (context, fileSystem): Promise<string> => {
  const { environment, search } = context;
  const broken = search.paths.find(({ fate }) => fate === "cannot-be-opened");
  if (broken) return `Get a fresh copy of ${broken.path}, which cannot be opened (${broken.reason ?? ""}).`;
  if (environment.override) return unsetOr("list archives that exist");
  const linked = search.paths.find(({ fate, reason }) => fate === "missing" && reason !== undefined);
  if (linked) {
    return `Mend the link ${linked.path}, or put an archive there: ${linked.reason ?? "it is broken"}.`;
  }
  const odd = search.paths.find(({ fate }) => fate === "no-regular-file");
  if (odd) return `Put an archive at ${odd.path}: ${odd.reason ?? "it is no regular file"}.`;
  return (await remedyForMissingFolder(context, fileSystem)) ?? deviceFilesFor(context);
});

/** What is installed elsewhere does not count while the variable is set. */
function unsetOr(other: string): string {
  return `Unset ROCM_KPACK_PATH, or ${other}: it replaces the search for the binary's own.`;
}

/** The whole folder of archives is gone, as when a library is copied without it. */
async function remedyForMissingFolder(
  context: RemedyContext,
  fileSystem: LoaderFileSystem,
): Promise<string | undefined> {
  const folders = new Set(
    context.search.paths.filter(({ origin }) => origin === "embedded").map(({ path }) => folderOf(path)),
  );
  const [folder] = folders;
  if (folder === undefined || inSitePackages(context.binaryPath) !== undefined) return undefined;
  for (const each of folders) if ((await fileSystem.kind(each)) === "folder") return undefined;
  const name = fileNameOf(folder);
  return (
    `Copy the folder ${name} that came with ${fileNameOf(context.binaryPath)} to ${folder}: ` +
    `the library was moved or copied without it, or the device package of ${processorOf(context)} is missing.`
  );
}

function deviceFilesFor(context: RemedyContext): string {
  const processor = processorOf(context);
  const product = inSitePackages(context.binaryPath);
  if (product === "torch") {
    return (
      `Install the device package of ${processor}: pip install "torch[device-${processor}]", ` +
      `which brings amd-torch-device-${processor}; without that extra, use a wheel index for this GPU.`
    );
  }
  if (product === "rocm") {
    return (
      `Install the device package of ${processor}: pip install "rocm[libraries,device-${processor}]"; ` +
      "without that extra, use a wheel index for this GPU."
    );
  }
  const names = context.metadata.searchPaths.map((path) =>
    fileNameOf(path).replace(TARGET_PLACEHOLDER, processor),
  );
  const folder = context.search.paths.find(({ origin }) => origin === "embedded")?.path;
  const where = folder === undefined ? "" : ` to ${folderOf(folder)}`;
  return `Install the device package of ${processor}, or copy ${names.join(" or ")} of the same build${where}.`;
}

const remedyForMissingTarget = oncePerSearch(async (context): Promise<string> => {
  const { search } = context;
  for (const { archive, path } of search.archives) {
    const unlisted = archive.toc.entries.targetNames.find(
      (target) => !archive.targets.includes(target) && fits(target, search.isas),
    );
    if (unlisted !== undefined) {
      return (
        `Get an archive whose gfx_arches lists ${unlisted}: ${fileNameOf(path)} has kernels for it, ` +
        "but the loader trusts gfx_arches alone."
      );
    }
    const reordered = archive.targets.find((target) => fitsInOtherOrder(target, search.isas));
    if (reordered !== undefined) {
      return `Give the ISA's flags in the order in which rocminfo prints them: the archive has ${reordered}.`;
    }
  }
  for (const { path, realPath, target } of search.paths) {
    const archive = search.archives.find((found) => found.realPath === realPath)?.archive;
    const held = archive && target !== undefined ? heldInstead(archive, target) : undefined;
    if (held === undefined) continue;
    return (
      `Replace ${path} by an archive for ${target} of the same build: ` +
      `the one that is there holds ${held.join(", ")} only.`
    );
  }
  if (context.environment.override) return unsetOr(`list an archive for ${processorOf(context)} too`);
  return deviceFilesFor(context);
});

function remedyForMissingKernel(context: RemedyContext): string {
  const { search, answer, environment } = context;
  const untried = answer.candidates.filter(({ outcome }) => outcome === "not-tried");
  if (search.behaviour === "before-2026-08" && untried.length > 0) {
    const first = fileNameOf(answer.candidates[0]?.archive ?? "");
    const away = environment.override ? "out of ROCM_KPACK_PATH" : "away";
    return (
      `Use ROCm later than 7.14, which goes on to the next archive, or take ${first} ${away}: ` +
      "it has only some of the kernels and hides the others."
    );
  }
  const last = answer.candidates.findLast(({ outcome }) => outcome === "failed");
  const archive = fileNameOf(last?.archive ?? "its archives");
  const scheme = search.archives.find(({ path }) => path === last?.archive)?.archive.schemeName;
  if (scheme !== undefined && !ROCM_SCHEMES.includes(scheme)) {
    return (
      `Get ${archive} in the scheme zstd-per-kernel ("kpack convert" makes it of one that can be read): ` +
      "beside none the runtime knows no other."
    );
  }
  const library = fileNameOf(context.binaryPath);
  if (environment.override) return unsetOr(`list archives of the same build as ${library}`);
  return (
    `Install ${library} and ${archive} from one build; if they are, then this ` +
    `part of ${library} was not built for ${last?.target ?? "this GPU"}.`
  );
}

function fits(target: string, isas: readonly string[]): boolean {
  const wanted = parseTargetId(target);
  return isas.some((isa) => {
    const given = parseTargetId(stripIsaPrefix(isa));
    return (
      wanted?.processor === given?.processor &&
      (wanted?.features ?? []).every(({ name, on }) =>
        given?.features.some((flag) => flag.name === name && flag.on === on),
      )
    );
  });
}

function fitsInOtherOrder(target: string, isas: readonly string[]): boolean {
  const wanted = parseTargetId(target);
  return isas.some((isa) => {
    const given = parseTargetId(stripIsaPrefix(isa));
    return (
      wanted !== undefined &&
      given !== undefined &&
      sameTarget(wanted, given) &&
      target !== stripIsaPrefix(isa)
    );
  });
}

/** Whose wheels a path belongs to, or undefined outside of a Python environment. */
function inSitePackages(path: string): "torch" | "rocm" | "other" | undefined {
  const [, inside] = /\/(?:site|dist)-packages\/(.*)$/.exec(path) ?? [];
  if (inside === undefined) return undefined;
  if (/^(?:torch|torchvision|torchaudio)\//.test(inside)) return "torch";
  return /^_?rocm/.test(inside) ? "rocm" : "other";
}

function processorOf(context: RemedyContext): string {
  return stripIsaPrefix(context.search.isas[0] ?? "").split(":")[0] ?? "";
}

/** What is odd about ISAs as a person typed them: an agent reports flags, in one order, of a processor that exists. */
export function isaNotes(isas: readonly string[]): readonly string[] {
  const notes: string[] = [];
  for (const isa of isas) {
    const target = parseTargetId(stripIsaPrefix(isa));
    if (target === undefined) {
      notes.push(`${isa} does not look like an ISA; rocminfo prints the ones of this machine`);
      continue;
    }
    const { processor, features } = target;
    if (!knownProcessors().includes(processor)) notes.push(`${processor} is not known here; it may be new`);
    const expected = [knowsSramecc(processor) && "sramecc", knowsXnack(processor) && "xnack"].filter(
      (name) => typeof name === "string",
    );
    const names = features.map(({ name }) => name);
    const missing = expected.filter((name) => !names.includes(name));
    if (missing.length > 0) {
      notes.push(
        `an agent of ${processor} reports ${missing.join(" and ")} too; archives with these flags in their ` +
          `names are not found for ${isa}: rocminfo prints the whole ISA`,
      );
    }
    if (names.join() !== names.toSorted().join())
      notes.push(`agents report the flags of ${isa} in another order`);
  }
  return notes;
}

/** An agent's ISAs for a processor with flags: its own and, behind it, the generic ones, with the same flags. */
export function agentIsas(isa: string): readonly string[] {
  const [processor = "", ...flags] = stripIsaPrefix(isa).split(":");
  return [isa, ...genericTargetsOf(processor).map((generic) => [generic, ...flags].join(":"))];
}
