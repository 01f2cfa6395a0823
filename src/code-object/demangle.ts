import {
  constant,
  lazy,
  listOf,
  makeNode,
  type Name,
  type NameNode,
  NotUnderstood,
  nodesOf,
  textOf,
} from "./demangle-node.ts";
import { OPERATORS } from "./demangle-tables.ts";
import { type FunctionName, TypeDemangler } from "./demangle-types.ts";

/**
 * The C++ name behind a mangled one (Itanium ABI), as c++filt writes it: `_Z4scalIfEvPT_` gives
 * `void scal<float>(float*)`. Knows what names of kernels consist of: templates, substitutions, builtin and vector
 * types, pointers, functions, arrays, literals, packs, lambdas. Whatever it does not understand comes back unchanged.
 */
export function demangle(name: string): string {
  const match = /^_Z([^.]*)(\..+)?$/s.exec(name);
  if (!match) return name;
  try {
    const text = new Demangler(match[1] ?? "").run();
    return match[2] === undefined ? text : `${text} [clone ${match[2]}]`;
  } catch (error) {
    // A chain of substitutions may be deeper than the stack.
    if (error instanceof NotUnderstood || error instanceof RangeError) return name;
    throw error;
  }
}

class Demangler extends TypeDemangler {
  run(): string {
    const name = this.encoding(true);
    if (this.position < this.text.length) this.fail();
    return textOf(name(undefined));
  }

  /** A function with its parameters, or the name of data. The result type is shown for the outermost function only. */
  protected override encoding(isOutermost: boolean): Name {
    return this.nested(() => {
      const outerArguments = this.templateArguments;
      this.templateArguments = undefined;
      const { name, hasResult, suffix } = this.name(true);
      const args = this.templateArguments as readonly Name[] | undefined;
      const isEnd = (): boolean => this.position === this.text.length || this.at("E");
      const isFunction = !isEnd();
      const result = isFunction && hasResult ? this.type() : undefined;
      const parameters = isFunction ? this.parameters(isEnd) : undefined;
      this.templateArguments = outerArguments;
      return lazy((outer) => {
        const scope = args ? { args, outer } : outer;
        const text = textOf(name(outer));
        if (!parameters) return makeNode(text);
        const declared = `${text}(${parameters(scope).left})${suffix}`;
        return makeNode(result && isOutermost ? withResult(result(scope), declared) : declared);
      });
    });
  }

  protected override parameters(isEnd: () => boolean): Name {
    const parameters: Name[] = [];
    while (!isEnd()) parameters.push(this.type());
    if (parameters.length === 0) this.fail();
    return lazy((scope) => {
      const list = listOf(nodesOf(parameters, scope));
      return makeNode(list === "void" ? "" : list);
    });
  }

  /** @param isEncoding the name of a function, whose template arguments `T_` refers to */
  protected override name(isEncoding: boolean): FunctionName {
    return this.nested(() => {
      if (this.take("N")) return this.#nestedName(isEncoding);
      if (this.take("Z")) return this.#localName(isEncoding);
      let name: Name;
      let hasResult = false;
      if (this.at("S") && !this.at("St")) {
        name = this.substitution();
        if (!this.at("I")) this.fail();
      } else {
        const std = this.take("St") ? constant("std") : undefined;
        const unqualified = this.#unqualifiedName(std);
        name = unqualified.name;
        hasResult = !unqualified.isSpecial;
        if (this.at("I")) this.substitutions.push(name);
      }
      if (!this.at("I")) return { name, hasResult: false, suffix: "" };
      return { name: this.withArgs(name, isEncoding), hasResult, suffix: "" };
    });
  }

  #nestedName(isEncoding: boolean): FunctionName {
    let suffix = "";
    const words: string[] = [];
    if (this.take("r")) words.push(" restrict");
    if (this.take("V")) words.push(" volatile");
    if (this.take("K")) words.push(" const");
    suffix = words.toReversed().join("");
    if (this.take("R")) suffix += " &";
    else if (this.take("O")) suffix += " &&";
    let name: Name | undefined;
    let hasResult = false;
    let isSpecial = false;
    while (!this.take("E")) {
      if (this.at("I")) {
        if (!name) this.fail();
        name = this.withArgs(name, isEncoding);
        hasResult = !isSpecial;
      } else if (this.at("T")) {
        if (name) this.fail();
        name = this.templateParameter();
      } else if (this.at("S") && !name) {
        name = this.take("St") ? constant("std") : this.substitution();
        continue;
      } else {
        this.take("M"); // a member's initializer: nothing to see of it
        const part = this.#unqualifiedName(name);
        name = part.name;
        isSpecial = part.isSpecial;
        hasResult = false;
      }
      this.substitutions.push(name);
    }
    if (!name) this.fail();
    this.substitutions.pop(); // the whole name is one only as a type, which adds it itself
    return { name, hasResult, suffix };
  }

  #localName(isEncoding: boolean): FunctionName {
    const owner = this.encoding(false);
    if (!this.take("E")) this.fail();
    if (this.take("s")) {
      this.#discriminator();
      return {
        name: lazy((scope) => makeNode(`${textOf(owner(scope))}::string literal`)),
        hasResult: false,
        suffix: "",
      };
    }
    if (this.at("d")) this.fail(); // inside a default argument
    const inner = this.name(isEncoding);
    this.#discriminator();
    const name = lazy((scope) => {
      const node = inner.name(scope);
      return makeNode(`${textOf(owner(scope))}::${textOf(node)}`, { lastName: node.lastName });
    });
    return { ...inner, name };
  }

  #discriminator(): void {
    this.match(/_(?:\d|_\d+_)/y);
  }

  /** One part of a name, put behind its owner. */
  #unqualifiedName(owner: Name | undefined): { readonly name: Name; readonly isSpecial: boolean } {
    this.take("L"); // internal linkage
    const kind = this.match(/[CD][0-5]|Ul|Ut|cv|[a-z][a-zA-Z]/y);
    let own: Name;
    if (kind === undefined) own = constant(this.sourceName());
    else if (kind === "Ul") own = this.#lambda();
    else if (kind === "Ut") own = constant(`{unnamed type#${this.#number0()}}`);
    else if (kind === "cv") {
      const type = this.type();
      own = lazy((scope) => makeNode(`operator ${textOf(type(scope))}`));
    } else if (/^[CD]/.test(kind)) {
      if (!owner) this.fail();
      own = lazy((scope) => {
        const { lastName } = owner(scope);
        if (lastName === "") this.fail();
        return makeNode(kind.startsWith("D") ? `~${lastName}` : lastName);
      });
    } else {
      const sign = OPERATORS.get(kind);
      if (sign === undefined) this.fail();
      own = constant(`operator${sign}`);
    }
    let tags = "";
    while (this.take("B")) tags += `[abi:${this.sourceName()}]`;
    const name = lazy((scope) => {
      const text = textOf(own(scope)) + tags;
      return makeNode(owner ? `${textOf(owner(scope))}::${text}` : text, { lastName: text });
    });
    return { name, isSpecial: kind !== undefined && /^(?:cv|[CD])/.test(kind) };
  }

  protected override sourceName(): string {
    const digits = this.match(/[1-9]\d{0,5}/y);
    if (digits === undefined) this.fail();
    const end = this.position + Number(digits);
    if (end > this.text.length) this.fail();
    const name = this.text.slice(this.position, end);
    this.position = end;
    return /^_GLOBAL_[._$]N/.test(name) ? "(anonymous namespace)" : name;
  }

  #lambda(): Name {
    const outer = this.inLambda;
    this.inLambda = true;
    const parameters = this.parameters(() => this.at("E"));
    this.inLambda = outer;
    this.position += 1;
    const number = this.#number0();
    return lazy((scope) => makeNode(`{lambda(${parameters(scope).left})#${number}}`));
  }

  /** `_` is 1, `0_` is 2, and so on. */
  #number0(): number {
    const digits = this.match(/\d{0,6}_/y);
    if (digits === undefined) this.fail();
    return digits === "_" ? 1 : Number(digits.slice(0, -1)) + 2;
  }
}

function withResult(result: NameNode, declared: string): string {
  if (result.kind === "function" || result.right !== "") return `${result.left}${declared}${result.right}`;
  return `${result.left} ${declared}`;
}
