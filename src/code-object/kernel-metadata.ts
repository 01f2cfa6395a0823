import { FormatError } from "../errors/errors.ts";
import { toJson } from "../msgpack/message-pack-decode.ts";
import type { MessagePackValue } from "../msgpack/message-pack-value.ts";
import { splitTriple } from "../target/target-id.ts";
import type { KernelDescriptor } from "./kernel-descriptor.ts";
import type { MetadataNote } from "./notes.ts";

/**
 * What the compiler says about the kernels of a code object.
 *
 * Version 3 and later have keys like `.vgpr_count` in a map for each kernel; version 2 has `NumVGPRs` in a map
 * `CodeProps`. Both become the same fields here. Keys that have no field are kept as they are.
 */
export interface CodeObjectMetadata {
  readonly form: MetadataNote["form"];
  /** `amdhsa.version`, for example `1.2`. */
  readonly version: string | undefined;
  /** `amdhsa.target` as it stands there: `amdgcn-amd-amdhsa--gfx90a:xnack-`. */
  readonly targetText: string | undefined;
  /** The target id in it: `gfx90a:xnack-`. */
  readonly target: string | undefined;
  /** Other keys, such as `amdhsa.printf`, in the order of the note. */
  readonly more: ReadonlyMap<string, MessagePackValue>;
  readonly kernels: readonly KernelMetadata[];
}

/** One kernel function. Counts and sizes are undefined where the compiler did not say. Sizes are bytes. */
export interface KernelMetadata {
  /** As the source calls it; mangled for C++: `_Z4fooPf`. */
  readonly name: string;
  /** The symbol of its descriptor: `_Z4fooPf.kd`. */
  readonly symbol: string;
  readonly vgprs: number | undefined;
  readonly sgprs: number | undefined;
  /** Accumulation registers, on targets that have them. */
  readonly agprs: number | undefined;
  readonly vgprSpills: number | undefined;
  readonly sgprSpills: number | undefined;
  /** Local data share of a workgroup: `.group_segment_fixed_size`. */
  readonly ldsSize: number | undefined;
  /** Private memory of a work-item: `.private_segment_fixed_size`. */
  readonly scratchSize: number | undefined;
  readonly kernargSize: number | undefined;
  /** 32 or 64. */
  readonly wavefrontSize: number | undefined;
  readonly maxFlatWorkgroupSize: number | undefined;
  readonly args: readonly KernelArgument[];
  /** Other keys, such as `.language`, in the order of the note. */
  readonly more: ReadonlyMap<string, MessagePackValue>;
}

/** A kernel function with its descriptor, where the code object has one for it. */
export interface KernelFunction extends KernelMetadata {
  readonly descriptor: KernelDescriptor | undefined;
}

export interface KernelArgument {
  readonly name: string | undefined;
  readonly typeName: string | undefined;
  readonly size: number | undefined;
  readonly offset: number | undefined;
  /** `global_buffer`, `by_value`, `hidden_global_offset_x` and so on. */
  readonly valueKind: string | undefined;
  readonly more: ReadonlyMap<string, MessagePackValue>;
}

type MetadataMap = ReadonlyMap<MessagePackValue, MessagePackValue>;
type CountField = Exclude<keyof KernelMetadata, "name" | "symbol" | "args" | "more">;

const COUNTS: Readonly<Record<CountField, readonly [string, string]>> = {
  vgprs: [".vgpr_count", "NumVGPRs"],
  sgprs: [".sgpr_count", "NumSGPRs"],
  agprs: [".agpr_count", "NumAGPRs"],
  vgprSpills: [".vgpr_spill_count", "NumSpilledVGPRs"],
  sgprSpills: [".sgpr_spill_count", "NumSpilledSGPRs"],
  ldsSize: [".group_segment_fixed_size", "GroupSegmentFixedSize"],
  scratchSize: [".private_segment_fixed_size", "PrivateSegmentFixedSize"],
  kernargSize: [".kernarg_segment_size", "KernargSegmentSize"],
  wavefrontSize: [".wavefront_size", "WavefrontSize"],
  maxFlatWorkgroupSize: [".max_flat_workgroup_size", "MaxFlatWorkGroupSize"],
};

/**
 * Interprets a metadata note.
 * @throws FormatError `WRONG_TYPE` or `MISSING_KEY` naming the field
 */
export function parseMetadata(note: MetadataNote, file: string): CodeObjectMetadata {
  const isYaml = note.form === "yaml";
  const root = new Fields(note.root, file, "metadata");
  const kernels = root.list(isYaml ? "Kernels" : "amdhsa.kernels").map((value, index) => {
    const field = `kernel ${index}`;
    if (!(value instanceof Map)) throw wrongType(file, field, "map");
    return isYaml ? parseKernelV2(value, file, field) : parseKernel(value, file, field);
  });
  const targetText = isYaml ? note.targetText : root.text("amdhsa.target");
  const version = root.take(isYaml ? "Version" : "amdhsa.version");
  return {
    form: note.form,
    version: Array.isArray(version) ? version.map(String).join(".") : undefined,
    targetText,
    target: targetText === undefined ? undefined : splitTriple(targetText).target,
    more: root.rest(),
    kernels,
  };
}

/** A function that only its descriptor tells of. */
export function functionWithoutMetadata(name: string, descriptor: KernelDescriptor): KernelFunction {
  return {
    ...countsOf(new Fields(new Map(), "", ""), 0),
    name,
    symbol: `${name}.kd`,
    ldsSize: descriptor.ldsSize,
    scratchSize: descriptor.scratchSize,
    kernargSize: descriptor.kernargSize,
    args: [],
    more: new Map(),
    descriptor,
  };
}

function parseKernel(map: MetadataMap, file: string, field: string): KernelMetadata {
  const fields = new Fields(map, file, field);
  const name = fields.requiredText(".name");
  const symbol = fields.text(".symbol") ?? `${name}.kd`;
  const counts = countsOf(fields, 0);
  const args = fields.list(".args").map((value, index) => {
    const argument = argumentFields(value, file, `${field} .args[${index}]`);
    return {
      name: argument.text(".name"),
      typeName: argument.text(".type_name"),
      size: argument.count(".size"),
      offset: argument.count(".offset"),
      valueKind: argument.text(".value_kind"),
      more: argument.rest(),
    };
  });
  return { name, symbol, ...counts, args, more: fields.rest() };
}

function parseKernelV2(map: MetadataMap, file: string, field: string): KernelMetadata {
  const fields = new Fields(map, file, field);
  const name = fields.requiredText("Name");
  // Version 2 writes the descriptor's symbol as NAME@kd.
  const symbol = (fields.text("SymbolName") ?? `${name}@kd`).replace(/@kd$/, ".kd");
  const properties = fields.take("CodeProps");
  if (properties !== undefined && !(properties instanceof Map))
    throw wrongType(file, `${field} CodeProps`, "map");
  const codeFields = new Fields(properties ?? new Map(), file, `${field} CodeProps`);
  const counts = countsOf(codeFields, 1);
  let end = 0;
  const args = fields.list("Args").map((value, index) => {
    const argument = argumentFields(value, file, `${field} Args[${index}]`);
    const size = argument.count("Size");
    const alignment = argument.count("Align");
    // Version 2 leaves the offset to be computed.
    const offset = size === undefined || !alignment ? undefined : Math.ceil(end / alignment) * alignment;
    end = (offset ?? end) + (size ?? 0);
    return {
      name: argument.text("Name"),
      typeName: argument.text("TypeName"),
      size,
      offset,
      valueKind: argument.text("ValueKind"),
      more: argument.rest(),
    };
  });
  return { name, symbol, ...counts, args, more: new Map([...fields.rest(), ...codeFields.rest()]) };
}

function countsOf(fields: Fields, spelling: 0 | 1): Record<CountField, number | undefined> {
  const count = (field: CountField): number | undefined => fields.count(COUNTS[field][spelling]);
  return {
    vgprs: count("vgprs"),
    sgprs: count("sgprs"),
    agprs: count("agprs"),
    vgprSpills: count("vgprSpills"),
    sgprSpills: count("sgprSpills"),
    ldsSize: count("ldsSize"),
    scratchSize: count("scratchSize"),
    kernargSize: count("kernargSize"),
    wavefrontSize: count("wavefrontSize"),
    maxFlatWorkgroupSize: count("maxFlatWorkgroupSize"),
  };
}

function argumentFields(value: MessagePackValue, file: string, field: string): Fields {
  if (!(value instanceof Map)) throw wrongType(file, field, "map");
  return new Fields(value, file, field);
}

/** Takes values out of a map by key; what nobody took is the rest. */
class Fields {
  readonly #map: MetadataMap;
  readonly #file: string;
  readonly #field: string;
  readonly #taken = new Set<string>();

  constructor(map: MetadataMap, file: string, field: string) {
    this.#map = map;
    this.#file = file;
    this.#field = field;
  }

  take(key: string): MessagePackValue | undefined {
    this.#taken.add(key);
    return this.#map.get(key);
  }

  text(key: string): string | undefined {
    const value = this.take(key);
    if (value === undefined || typeof value === "string") return value;
    throw wrongType(this.#file, `${this.#field} ${key}`, "string");
  }

  requiredText(key: string): string {
    const value = this.text(key);
    if (value !== undefined) return value;
    throw new FormatError("MISSING_KEY", "the metadata lacks a kernel's name", {
      file: this.#file,
      field: `${this.#field} ${key}`,
    });
  }

  count(key: string): number | undefined {
    const value = this.take(key);
    if (value === undefined || (typeof value === "number" && Number.isSafeInteger(value))) return value;
    throw wrongType(this.#file, `${this.#field} ${key}`, "integer");
  }

  list(key: string): readonly MessagePackValue[] {
    const value = this.take(key);
    if (value === undefined || value === null) return [];
    if (Array.isArray(value)) return value;
    throw wrongType(this.#file, `${this.#field} ${key}`, "array");
  }

  rest(): ReadonlyMap<string, MessagePackValue> {
    const rest = new Map<string, MessagePackValue>();
    for (const [key, value] of this.#map) {
      const name = typeof key === "string" ? key : JSON.stringify(toJson(key));
      if (!this.#taken.has(name)) rest.set(name, value);
    }
    return rest;
  }
}

function wrongType(file: string, field: string, expected: string): FormatError {
  return new FormatError("WRONG_TYPE", "the metadata's value has the wrong type", { file, field, expected });
}
