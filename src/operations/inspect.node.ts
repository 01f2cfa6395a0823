import { mapOrdered } from "../bytes/map-ordered.ts";
import { identifyPayload, type PayloadKind } from "../code-object/code-object.ts";
import { demangle } from "../code-object/demangle.ts";
import type { KernelFunction } from "../code-object/kernel-metadata.ts";
import { type CodeObject, readCodeObject } from "../code-object/read-code-object.ts";
import { NotFoundError } from "../errors/errors.ts";
import { type Finding, findingOrThrow, type OnFinding } from "../errors/finding.ts";
import type { OnProgress } from "../errors/progress.ts";
import {
  type CodeObjectFile,
  type CodeObjectPlace,
  findCodeObjects,
  type FindCodeObjectsOptions,
} from "./find-code-objects.node.ts";
import { defaultJobs } from "./jobs.node.ts";

/** Which code objects and kernels {@link inspectFile} takes. */
export interface InspectOptions extends FindCodeObjectsOptions {
  /** Only kernel functions with this name, mangled or not, or with this text in the demangled name. @default all */
  readonly kernel?: string | undefined;
  /** Keep arguments and other metadata of the functions, which are most of the memory. @default of one code object alone, and of chosen functions */
  readonly details?: boolean | undefined;
  readonly jobs?: number | undefined;
  readonly onProgress?: OnProgress | undefined;
}

/** What {@link inspectFile} found in a file. */
export interface Inspection {
  readonly file: string;
  readonly kind: CodeObjectFile["kind"];
  readonly codeObjects: readonly InspectedCodeObject[];
  /** What is wrong with the file or one of its code objects; the others were read all the same. */
  readonly findings: readonly Finding[];
}

/** One code object and where it stands. */
export interface InspectedCodeObject {
  /** For archives. */
  readonly binaryKey: string | undefined;
  /** Index of the bundle in a fat binary or bundle file. */
  readonly bundle: number | undefined;
  /** The indexes under which the runtime asks for it. */
  readonly indexes: readonly number[];
  /** The target that it is listed under. */
  readonly target: string;
  /** Undefined when its bytes could not be read. */
  readonly payload: PayloadKind | undefined;
  /** In bytes; of one that could not be read as the file states it, undefined where it does not. */
  readonly size: number | undefined;
  /** Undefined when it is none (SPIR-V, bitcode) or is damaged; a finding says what. */
  readonly codeObject: Omit<CodeObject, "functions"> | undefined;
  readonly functions: readonly InspectedFunction[];
}

/** A kernel function, with its name in readable form too. */
export interface InspectedFunction extends KernelFunction {
  /** As c++filt shows it, or the name itself where it is not understood. */
  readonly demangledName: string;
}

/**
 * Reads what the code objects of an archive, fat binary, bundle or code object say about themselves and their kernel
 * functions. Where they lie uncompressed in the file, only their headers, notes and symbols are read.
 *
 * @throws NotFoundError `KERNEL_NOT_FOUND` or `NOTHING_FOUND` when nothing matches the options
 */
export async function inspectFile(path: string, options: InspectOptions = {}): Promise<Inspection> {
  const findings: Finding[] = [];
  const onFinding: OnFinding = (finding) => {
    findings.push(finding);
    options.onFinding?.(finding);
  };
  await using file = await findCodeObjects(path, { ...options, onFinding });
  const details = options.details ?? (file.places.length === 1 || options.kernel !== undefined);
  const codeObjects: InspectedCodeObject[] = [];
  let done = 0;
  const names: DemangledNames = new Map();
  // Findings wait for their turn, so that they come in the order of the file.
  const inspect = async (
    place: CodeObjectPlace,
  ): Promise<readonly [InspectedCodeObject, readonly Finding[]]> => {
    const own: Finding[] = [];
    const how = { kernel: options.kernel, details, names, signal: options.signal };
    return [await inspectPlace(place, { ...how, onFinding: (finding) => own.push(finding) }), own];
  };
  for await (const [inspected, own] of mapOrdered(file.places, options.jobs ?? defaultJobs(), inspect)) {
    own.forEach(onFinding);
    if (options.kernel === undefined || inspected.functions.length > 0) codeObjects.push(inspected);
    done += 1;
    options.onProgress?.({ stage: "inspect", done, total: file.places.length, unit: "kernels" });
  }
  if (codeObjects.length === 0 && options.kernel !== undefined) {
    throw noSuchFunction(path, options.kernel);
  }
  return { file: path, kind: file.kind, codeObjects, findings };
}

/** What {@link readForDisassembly} found. */
export interface ForDisassembly {
  readonly kind: CodeObjectFile["kind"];
  /** How many code objects the options choose. */
  readonly count: number;
  /** Undefined when they choose several. */
  readonly inspected: InspectedCodeObject | undefined;
  /** All of the code object; undefined when they choose several, or none that can be read. */
  readonly bytes: Uint8Array | undefined;
}

/** The one code object that the options choose, with all its bytes. When they choose several, nothing is read. */
export async function readForDisassembly(
  path: string,
  options: Omit<InspectOptions, "details" | "jobs"> & { readonly onFinding: OnFinding },
): Promise<ForDisassembly> {
  const { signal, onFinding, kernel } = options;
  await using file = await findCodeObjects(path, options);
  const { kind } = file;
  const count = file.places.length;
  const [place] = file.places;
  if (count > 1 || !place) return { kind, count, inspected: undefined, bytes: undefined };
  const inspected = await inspectPlace(place, { kernel, details: true, names: new Map(), onFinding, signal });
  if (inspected.codeObject === undefined) return { kind, count, inspected, bytes: undefined };
  if (kernel !== undefined && inspected.functions.length === 0) throw noSuchFunction(path, kernel);
  await using source = await place.open();
  return { kind, count, inspected, bytes: await source.read(0, source.size, { signal }) };
}

/** Whether a function is meant by a name that a user gave. */
export function matchesKernel(name: string, demangledName: string, wanted: string): boolean {
  return name === wanted || `${name}.kd` === wanted || demangledName.includes(wanted);
}

/** Names that were demangled already: a library has each of them for every target. */
type DemangledNames = Map<string, string>;

async function inspectPlace(
  place: CodeObjectPlace,
  options: {
    readonly kernel: string | undefined;
    readonly details: boolean;
    readonly names: DemangledNames;
    readonly onFinding: OnFinding;
    readonly signal: AbortSignal | undefined;
  },
): Promise<InspectedCodeObject> {
  const { signal, onFinding } = options;
  const { binaryKey, bundle, indexes, target } = place;
  let payload: PayloadKind | undefined;
  let { size } = place;
  try {
    await using source = await place.open();
    size = source.size;
    payload = identifyPayload(await source.read(0, Math.min(64, source.size), { signal }));
    if (payload === "code-object") {
      const { functions, ...codeObject } = await readCodeObject(source, { signal });
      for (const finding of codeObject.findings) onFinding(finding);
      return {
        binaryKey,
        bundle,
        indexes,
        target,
        payload,
        size,
        codeObject,
        functions: inspectedFunctions(functions, options),
      };
    }
    onFinding({
      severity: "warning",
      code: "NOT_A_CODE_OBJECT",
      message: `no code object, its bytes are: ${payload}`,
      file: source.name,
    });
  } catch (error) {
    onFinding(findingOrThrow(error));
  }
  return { binaryKey, bundle, indexes, target, payload, size, codeObject: undefined, functions: [] };
}

function inspectedFunctions(
  functions: readonly KernelFunction[],
  options: {
    readonly kernel: string | undefined;
    readonly details: boolean;
    readonly names: DemangledNames;
  },
): readonly InspectedFunction[] {
  const inspected: InspectedFunction[] = [];
  for (const kernel of functions) {
    const demangledName = options.names.get(kernel.name) ?? demangle(kernel.name);
    options.names.set(kernel.name, demangledName);
    if (options.kernel !== undefined && !matchesKernel(kernel.name, demangledName, options.kernel)) continue;
    const rest = options.details ? {} : { args: [], more: new Map(), descriptor: undefined };
    inspected.push({ ...kernel, ...rest, demangledName });
  }
  return inspected;
}

function noSuchFunction(file: string, name: string): NotFoundError {
  return new NotFoundError("NOTHING_FOUND", "no kernel function has this name", {
    file,
    field: "--kernel",
    expected: name,
    hint: '"kpack inspect FILE" lists them; a part of the demangled name is enough.',
  });
}
