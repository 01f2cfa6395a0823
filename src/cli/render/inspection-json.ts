import { toJson } from "../../msgpack/message-pack-decode.ts";
import type { MessagePackValue } from "../../msgpack/message-pack-value.ts";
import type { InspectedCodeObject, InspectedFunction } from "../../operations/inspect.node.ts";

/** A code object as `kpack/inspect/1` has it. Fields that are not known are left out. */
export function codeObjectToJson(inspected: InspectedCodeObject): Readonly<Record<string, unknown>> {
  const { binaryKey, bundle, indexes, target, payload, size, codeObject, functions } = inspected;
  const { header, metadata, sections } = codeObject ?? {};
  const built = header?.target;
  return {
    binaryKey,
    bundle,
    indexes: binaryKey === undefined ? indexes : undefined,
    target,
    payload,
    size,
    codeObject: header && {
      version: built?.codeObjectVersion,
      eFlags: `0x${header.eFlags.toString(16)}`,
      target: built?.targetName,
      processor: built?.processor,
      processorNumber: built?.processorNumber,
      xnack: built?.xnack,
      sramecc: built?.sramecc,
      genericVersion: built?.genericVersion,
      metadata: metadata && {
        form: metadata.form,
        version: metadata.version,
        target: metadata.targetText,
        more: mapToJson(metadata.more),
      },
      sections,
      kernels: functions.map(functionToJson),
    },
  };
}

function functionToJson(kernel: InspectedFunction): Readonly<Record<string, unknown>> {
  const { args, more, descriptor, ...rest } = kernel;
  return {
    ...rest,
    args:
      args.length > 0 ? args.map((argument) => ({ ...argument, more: mapToJson(argument.more) })) : undefined,
    more: mapToJson(more),
    descriptor: descriptor && {
      ...descriptor,
      entryAddress: `0x${BigInt.asUintN(64, descriptor.entryAddress).toString(16)}`,
    },
  };
}

function mapToJson(map: ReadonlyMap<string, MessagePackValue>): unknown {
  return map.size > 0 ? toJson(map) : undefined;
}
