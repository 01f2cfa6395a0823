import { printable } from "../../bytes/text.ts";
import type { MessagePackValue } from "../../msgpack/message-pack-value.ts";
import { toJson } from "../../msgpack/message-pack-decode.ts";
import type { InspectedCodeObject, InspectedFunction } from "../../operations/inspect.node.ts";
import { formatCount, formatSize } from "./numbers.ts";
import { type Column, renderTable } from "./table.ts";
import { wrapText } from "./wrap.ts";

/** Text for people about code objects and their kernel functions. */

export interface RenderOptions {
  /** Columns of text; longer names of kernels are cut. Infinity cuts nothing. */
  readonly width: number;
}

type Count = number | undefined;

/** `gfx90a:xnack-  lib/a.so#0  code object V5, 3 kernels, 12.3 kB`, and a table of the kernels. */
export function renderCodeObject(inspected: InspectedCodeObject, options: RenderOptions): string {
  const { target, codeObject, functions, payload, size } = inspected;
  const what = codeObject
    ? `code object V${codeObject.header.target.codeObjectVersion}, ${formatCount(functions.length, "kernel")}`
    : payload === undefined || payload === "code-object"
      ? "damaged"
      : payload;
  const place = placeOf(inspected);
  const head = `${printable(target)}  ${place === "" ? "" : `${place}  `}${what}${size === undefined ? "" : `, ${formatSize(size)}`}`;
  return functions.length === 0 ? head : `${head}\n${renderFunctions(functions, options)}`;
}

/** What a code object says about itself, its sections, and its kernels. */
export function renderDetails(inspected: InspectedCodeObject, options: RenderOptions): string {
  const { codeObject, functions, size, target } = inspected;
  if (!codeObject) return renderCodeObject(inspected, options);
  const { header, metadata, sections } = codeObject;
  const built = header.target;
  const place = placeOf(inspected);
  const pairs: readonly (readonly [string, string | undefined])[] = [
    ["place", place === "" ? undefined : place],
    ["target", built.targetName === target ? target : `${built.targetName}, listed as ${target}`],
    ["features", `xnack ${built.xnack}, sramecc ${built.sramecc}`],
    ["e_flags", `0x${header.eFlags.toString(16)} (processor 0x${built.processorNumber.toString(16)})`],
    [
      "version",
      `code object V${built.codeObjectVersion}${built.genericVersion > 0 ? `, generic version ${built.genericVersion}` : ""}`,
    ],
    ["metadata", metadata ? describeMetadata(metadata) : "none"],
    ["size", bytes(size)],
  ];
  const parts = [
    renderPairs(pairs),
    renderTable(
      [
        { title: "SECTION" },
        { title: "SIZE", align: "right" },
        { title: "IN FILE", align: "right" },
        { title: "ADDRESS", align: "right" },
      ],
      sections.map((section) => [
        section.name,
        String(section.size),
        String(section.fileSize),
        `0x${section.address.toString(16)}`,
      ]),
    ),
  ];
  if (functions.length > 0) parts.push(renderFunctions(functions, options));
  return parts.join("\n\n");
}

/** Everything about one kernel function. */
export function renderFunction(kernel: InspectedFunction, options: RenderOptions): string {
  const { descriptor } = kernel;
  const pairs: readonly (readonly [string, string | undefined])[] = [
    ["symbol", kernel.symbol],
    ["VGPRs", withSpills(kernel.vgprs, kernel.vgprSpills)],
    ["SGPRs", withSpills(kernel.sgprs, kernel.sgprSpills)],
    ["AGPRs", kernel.agprs === undefined ? undefined : String(kernel.agprs)],
    ["LDS", bytes(kernel.ldsSize)],
    ["scratch", bytes(kernel.scratchSize)],
    ["kernarg", bytes(kernel.kernargSize)],
    ["wavefront", count(kernel.wavefrontSize)],
    [
      "workgroup",
      kernel.maxFlatWorkgroupSize === undefined
        ? undefined
        : `at most ${kernel.maxFlatWorkgroupSize} work-items`,
    ],
    ["code", descriptor && `at address 0x${BigInt.asUintN(64, descriptor.entryAddress).toString(16)}`],
    [
      "registers",
      descriptor &&
        `rsrc1 ${hex(descriptor.rsrc1)}, rsrc2 ${hex(descriptor.rsrc2)}, rsrc3 ${hex(descriptor.rsrc3)}`,
    ],
    ...[...kernel.more].map(([key, value]): readonly [string, string] => [key, describeValue(value)]),
  ];
  const parts = [wrapText(printable(kernel.demangledName), "  ", options.width), renderPairs(pairs)];
  if (kernel.args.length > 0) {
    parts.push(
      renderTable(
        [
          { title: "OFFSET", align: "right" },
          { title: "SIZE", align: "right" },
          { title: "KIND" },
          { title: "ARGUMENT" },
        ],
        kernel.args.map(({ offset, size, valueKind, name, typeName, more }) => [
          count(offset),
          count(size),
          valueKind ?? "?",
          [name, typeName, ...[...more].map(([key, value]) => `${key} ${describeValue(value)}`)]
            .filter((part) => part !== undefined)
            .join("  "),
        ]),
      ),
    );
  }
  return parts.join("\n");
}

function renderFunctions(functions: readonly InspectedFunction[], options: RenderOptions): string {
  const hasAgprs = functions.some(({ agprs }) => agprs !== undefined);
  const numbers: readonly (readonly [string, (kernel: InspectedFunction) => Count])[] = [
    ["VGPRS", ({ vgprs }) => vgprs],
    ["SGPRS", ({ sgprs }) => sgprs],
    ...(hasAgprs ? ([["AGPRS", ({ agprs }: InspectedFunction) => agprs]] as const) : []),
    ["SPILLS", ({ vgprSpills, sgprSpills }) => sum(vgprSpills, sgprSpills)],
    ["LDS", ({ ldsSize }) => ldsSize],
    ["SCRATCH", ({ scratchSize }) => scratchSize],
    ["KERNARG", ({ kernargSize }) => kernargSize],
    ["WAVE", ({ wavefrontSize }) => wavefrontSize],
    ["GROUP", ({ maxFlatWorkgroupSize }) => maxFlatWorkgroupSize],
  ];
  const columns: readonly Column[] = [
    ...numbers.map(([title]): Column => ({ title, align: "right" })),
    { title: "KERNEL" },
  ];
  const rows = functions.map((kernel) => [
    ...numbers.map(([, value]) => count(value(kernel))),
    printable(kernel.demangledName),
  ]);
  return cutLines(renderTable(columns, rows), options.width);
}

/** Cuts what is too long, at the end: names of kernels stand in the last column. */
function cutLines(text: string, width: number): string {
  if (width === Number.POSITIVE_INFINITY) return text;
  return text
    .split("\n")
    .map((line) => (line.length <= width ? line : `${line.slice(0, width - 1)}…`))
    .join("\n");
}

function placeOf({ binaryKey, bundle, indexes }: InspectedCodeObject): string {
  if (binaryKey !== undefined) return printable(binaryKey);
  if (bundle === undefined) return "";
  return `bundle ${bundle}${indexes.map((index) => ` #${index}`).join("")}`;
}

function describeMetadata(metadata: NonNullable<InspectedCodeObject["codeObject"]>["metadata"]): string {
  const { version, targetText, form, more } = metadata ?? {};
  const parts = [
    `version ${version ?? "?"}`,
    form === "yaml" ? "YAML" : "MessagePack",
    targetText && printable(targetText),
  ];
  const others = more && more.size > 0 ? `also ${[...more.keys()].map(printable).join(", ")}` : undefined;
  return [...parts, others].filter((part) => part !== undefined && part !== "").join(", ");
}

function describeValue(value: MessagePackValue): string {
  return typeof value === "string" ? printable(value) : printable(JSON.stringify(toJson(value)));
}

export function renderPairs(pairs: readonly (readonly [string, string | undefined])[]): string {
  const given = pairs.filter((pair): pair is readonly [string, string] => pair[1] !== undefined);
  const width = given.reduce((most, [name]) => Math.max(most, printable(name).length), 0);
  return given.map(([name, value]) => `${printable(name).padEnd(width)}  ${value}`).join("\n");
}

function withSpills(registers: Count, spills: Count): string | undefined {
  if (registers === undefined) return undefined;
  return spills === undefined || spills === 0 ? String(registers) : `${registers}, ${spills} spilled`;
}

function sum(a: Count, b: Count): Count {
  return a === undefined && b === undefined ? undefined : (a ?? 0) + (b ?? 0);
}

function count(value: Count): string {
  return value === undefined ? "-" : String(value);
}

function bytes(value: Count): string | undefined {
  return value === undefined ? undefined : formatSize(value);
}

function hex(value: number): string {
  return `0x${value.toString(16).padStart(8, "0")}`;
}
