/**
 * A part of a demangled name. C++ writes some types around what they belong to, as `int (*` … `)[3]`: hence a left
 * and a right half. A pack stands for several types at once and becomes a list where it is expanded.
 */
export interface NameNode {
  readonly left: string;
  readonly right: string;
  /** What a `*` or `&` has to look out for. */
  readonly kind: "plain" | "function" | "array" | "lvalue-reference" | "rvalue-reference" | "pack";
  /** The innermost name, for constructors: `b` of `a::b<int>`. */
  readonly lastName: string;
  readonly elements: readonly NameNode[];
}

/** The template arguments that `T_` and its like mean, and those of the function around. */
export interface Scope {
  readonly args: readonly Name[];
  readonly outer: Scope | undefined;
}

/**
 * A part of a name before it is known what its template parameters stand for. A substitution stands for the letters it
 * was made from, so that a `T_` in it means another type where it is used in another function's name.
 */
export type Name = (scope: Scope | undefined) => NameNode;

/** Thrown where a name is not understood, or would become absurdly large; never leaves the demangler. */
export class NotUnderstood extends Error {}

/** Substitutions can double a name's size with every two letters. */
const LONGEST_TEXT = 1 << 16;

export function makeNode(left: string, changes: Partial<NameNode> = {}): NameNode {
  const node = { left, right: "", kind: "plain", lastName: "", elements: [], ...changes } as const;
  if (node.left.length + node.right.length > LONGEST_TEXT) throw new NotUnderstood("the name is too long");
  return node;
}

export function constant(text: string, lastName: string = text): Name {
  const node = makeNode(text, { lastName });
  return () => node;
}

/** Remembers the last result: parts are used again and again, most of them in one scope. */
export function lazy(name: Name): Name {
  let last: { readonly scope: Scope | undefined; readonly node: NameNode } | undefined;
  return (scope) => {
    if (!last || last.scope !== scope) last = { scope, node: name(scope) };
    return last.node;
  };
}

/** What template parameter `index` stands for. */
export function argumentOf(scope: Scope | undefined, index: number): NameNode {
  const argument = scope?.args[index];
  if (!argument) throw new NotUnderstood("no such template parameter");
  return argument(scope?.outer);
}

export function nodesOf(names: readonly Name[], scope: Scope | undefined): readonly NameNode[] {
  return names.map((name) => name(scope));
}

export function packNode(elements: readonly NameNode[]): NameNode {
  return makeNode("", { kind: "pack", elements });
}

export function textOf(node: NameNode): string {
  if (node.kind === "pack") return listOf([node]);
  return node.left + node.right;
}

/** The texts of nodes with commas; packs become their elements. */
export function listOf(nodes: readonly NameNode[]): string {
  const texts = nodes.flatMap(flatten).map(textOf);
  return makeNode(texts.join(", ")).left;
}

export function flatten(node: NameNode): readonly NameNode[] {
  return node.kind === "pack" ? node.elements.flatMap(flatten) : [node];
}

export function withArguments(node: NameNode, args: readonly NameNode[]): NameNode {
  const list = listOf(args);
  return makeNode(`${node.left}<${list}${list.endsWith(">") ? " >" : ">"}`, { lastName: node.lastName });
}

/** `const`, `AS1` and other words behind a type. */
export function qualified(node: NameNode, word: string): NameNode {
  if (node.kind === "pack") return packNode(node.elements.map((element) => qualified(element, word)));
  if (node.kind === "function") return { ...node, right: `${node.right} ${word}` };
  // The elements of an array are const, not the array.
  return makeNode(`${node.left} ${word}`, {
    right: node.right,
    kind: node.kind === "array" ? "array" : "plain",
  });
}

/** A pointer or reference to `node`. References to references collapse. */
export function pointerTo(node: NameNode, sign: "*" | "&" | "&&"): NameNode {
  if (node.kind === "pack") return packNode(node.elements.map((element) => pointerTo(element, sign)));
  const kind = sign === "*" ? "plain" : sign === "&" ? "lvalue-reference" : "rvalue-reference";
  if (sign !== "*" && node.kind === "lvalue-reference") return node;
  if (sign !== "*" && node.kind === "rvalue-reference") {
    return sign === "&&" ? node : makeNode(node.left.replace(/&&$/, "&"), { right: node.right, kind });
  }
  return wrapped(node, sign, kind);
}

/** A pointer to a member of `owner`. */
export function memberPointer(owner: NameNode, member: NameNode): NameNode {
  const sign = `${textOf(owner)}::*`;
  return wrapped(member, member.kind === "function" ? sign : ` ${sign}`, "plain");
}

/** Puts a declarator next to the type, in parentheses where the type reaches around it. */
function wrapped(node: NameNode, sign: string, kind: NameNode["kind"]): NameNode {
  if (node.kind === "function") return makeNode(`${node.left}(${sign}`, { right: `)${node.right}`, kind });
  if (node.kind === "array")
    return makeNode(`${node.left} (${sign}`, { right: `) ${node.right.trimStart()}`, kind });
  return makeNode(node.left + sign, { right: node.right, kind });
}

export function functionNode(result: NameNode, parameters: string, suffix: string): NameNode {
  // A result that reaches around, itself a pointer to a function, leaves no room for a space.
  return makeNode(result.right === "" ? `${result.left} ` : result.left, {
    right: `(${parameters})${suffix}${result.right}`,
    kind: "function",
  });
}

export function arrayOf(element: NameNode, size: string): NameNode {
  const inner = element.kind === "array" ? element.right.trimStart() : "";
  return element.kind === "array"
    ? makeNode(element.left, { right: ` [${size}]${inner}`, kind: "array" })
    : makeNode(element.left, { right: ` [${size}]${element.right}`, kind: "array" });
}
