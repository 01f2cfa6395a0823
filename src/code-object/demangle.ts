import {
  argumentOf,
  arrayOf,
  constant,
  functionNode,
  lazy,
  listOf,
  makeNode,
  memberPointer,
  type Name,
  type NameNode,
  NotUnderstood,
  nodesOf,
  packNode,
  pointerTo,
  qualified,
  textOf,
  withArguments,
} from "./demangle-node.ts";
import { NameScanner } from "./demangle-scanner.ts";
import {
  BUILTIN_D_TYPES,
  BUILTIN_TYPES,
  LITERAL_SUFFIXES,
  OPERATORS,
  STANDARD_SUBSTITUTIONS,
} from "./demangle-tables.ts";

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

const QUALIFIERS: ReadonlyMap<string, string> = new Map([
  ["K", "const"],
  ["V", "volatile"],
  ["r", "restrict"],
]);

class Demangler extends NameScanner {
  readonly #substitutions: Name[] = [];
  /** The template arguments of the innermost function's own name, which `T_` and its like refer to. */
  #templateArguments: readonly Name[] | undefined;
  #inLambda = false;

  run(): string {
    const name = this.#encoding(true);
    if (this.position < this.text.length) this.fail();
    return textOf(name(undefined));
  }

  /** A function with its parameters, or the name of data. The result type is shown for the outermost function only. */
  #encoding(isOutermost: boolean): Name {
    return this.nested(() => {
      const outerArguments = this.#templateArguments;
      this.#templateArguments = undefined;
      const { name, hasResult, suffix } = this.#name(true);
      const args = this.#templateArguments as readonly Name[] | undefined;
      const isEnd = (): boolean => this.position === this.text.length || this.at("E");
      const isFunction = !isEnd();
      const result = isFunction && hasResult ? this.#type() : undefined;
      const parameters = isFunction ? this.#parameters(isEnd) : undefined;
      this.#templateArguments = outerArguments;
      return lazy((outer) => {
        const scope = args ? { args, outer } : outer;
        const text = textOf(name(outer));
        if (!parameters) return makeNode(text);
        const declared = `${text}(${parameters(scope).left})${suffix}`;
        return makeNode(result && isOutermost ? withResult(result(scope), declared) : declared);
      });
    });
  }

  #parameters(isEnd: () => boolean): Name {
    const parameters: Name[] = [];
    while (!isEnd()) parameters.push(this.#type());
    if (parameters.length === 0) this.fail();
    return lazy((scope) => {
      const list = listOf(nodesOf(parameters, scope));
      return makeNode(list === "void" ? "" : list);
    });
  }

  /** @param isEncoding the name of a function, whose template arguments `T_` refers to */
  #name(isEncoding: boolean): FunctionName {
    return this.nested(() => {
      if (this.take("N")) return this.#nestedName(isEncoding);
      if (this.take("Z")) return this.#localName(isEncoding);
      let name: Name;
      let hasResult = false;
      if (this.at("S") && !this.at("St")) {
        name = this.#substitution();
        if (!this.at("I")) this.fail();
      } else {
        const std = this.take("St") ? constant("std") : undefined;
        const unqualified = this.#unqualifiedName(std);
        name = unqualified.name;
        hasResult = !unqualified.isSpecial;
        if (this.at("I")) this.#substitutions.push(name);
      }
      if (!this.at("I")) return { name, hasResult: false, suffix: "" };
      return { name: this.#withArgs(name, isEncoding), hasResult, suffix: "" };
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
        name = this.#withArgs(name, isEncoding);
        hasResult = !isSpecial;
      } else if (this.at("T")) {
        if (name) this.fail();
        name = this.#templateParameter();
      } else if (this.at("S") && !name) {
        name = this.take("St") ? constant("std") : this.#substitution();
        continue;
      } else {
        this.take("M"); // a member's initializer: nothing to see of it
        const part = this.#unqualifiedName(name);
        name = part.name;
        isSpecial = part.isSpecial;
        hasResult = false;
      }
      this.#substitutions.push(name);
    }
    if (!name) this.fail();
    this.#substitutions.pop(); // the whole name is one only as a type, which adds it itself
    return { name, hasResult, suffix };
  }

  #localName(isEncoding: boolean): FunctionName {
    const owner = this.#encoding(false);
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
    const inner = this.#name(isEncoding);
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
    if (kind === undefined) own = constant(this.#sourceName());
    else if (kind === "Ul") own = this.#lambda();
    else if (kind === "Ut") own = constant(`{unnamed type#${this.#number0()}}`);
    else if (kind === "cv") {
      const type = this.#type();
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
    while (this.take("B")) tags += `[abi:${this.#sourceName()}]`;
    const name = lazy((scope) => {
      const text = textOf(own(scope)) + tags;
      return makeNode(owner ? `${textOf(owner(scope))}::${text}` : text, { lastName: text });
    });
    return { name, isSpecial: kind !== undefined && /^(?:cv|[CD])/.test(kind) };
  }

  #sourceName(): string {
    const digits = this.match(/[1-9]\d{0,5}/y);
    if (digits === undefined) this.fail();
    const end = this.position + Number(digits);
    if (end > this.text.length) this.fail();
    const name = this.text.slice(this.position, end);
    this.position = end;
    return /^_GLOBAL_[._$]N/.test(name) ? "(anonymous namespace)" : name;
  }

  #lambda(): Name {
    const outer = this.#inLambda;
    this.#inLambda = true;
    const parameters = this.#parameters(() => this.at("E"));
    this.#inLambda = outer;
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

  #type(): Name {
    return this.nested(() => {
      const qualifiers = this.match(/r?V?K?/y) ?? "";
      if (qualifiers !== "") {
        const inner = this.#type();
        const words = [...QUALIFIERS].filter(([code]) => qualifiers.includes(code)).map(([, word]) => word);
        return this.#substitutable((scope) => words.reduce(qualified, inner(scope)));
      }
      const builtin = BUILTIN_TYPES.get(this.text[this.position] ?? "");
      if (builtin !== undefined) {
        this.position += 1;
        return constant(builtin);
      }
      return this.#compoundType();
    });
  }

  #compoundType(): Name {
    if (this.take("P")) return this.#derived((node) => pointerTo(node, "*"));
    if (this.take("R")) return this.#derived((node) => pointerTo(node, "&"));
    if (this.take("O")) return this.#derived((node) => pointerTo(node, "&&"));
    if (this.take("C")) return this.#derived((node) => qualified(node, "_Complex"));
    if (this.take("G")) return this.#derived((node) => qualified(node, "_Imaginary"));
    if (this.take("F")) return this.#functionType("");
    if (this.take("DoF")) return this.#functionType(" noexcept");
    if (this.take("u")) return this.#substitutable(constant(this.#sourceName()));
    if (this.take("U")) {
      const name = constant(this.#sourceName());
      const word = this.at("I") ? this.#withArgs(name, false) : name;
      const inner = this.#type();
      return this.#substitutable((scope) => qualified(inner(scope), textOf(word(scope))));
    }
    if (this.take("M")) {
      const owner = this.#type();
      const member = this.#type();
      return this.#substitutable((scope) => memberPointer(owner(scope), member(scope)));
    }
    if (this.take("A")) return this.#arrayType();
    if (this.at("T")) return this.#perhapsTemplate(this.#substitutable(this.#templateParameter()));
    if (this.at("S") && !this.at("St")) return this.#perhapsTemplate(this.#substitution());
    if (this.take("D")) return this.#dType();
    if (/[NZS\d]/.test(this.text[this.position] ?? "")) return this.#substitutable(this.#name(false).name);
    this.fail();
  }

  #derived(derive: (node: NameNode) => NameNode): Name {
    const inner = this.#type();
    return this.#substitutable((scope) => derive(inner(scope)));
  }

  #perhapsTemplate(name: Name): Name {
    return this.at("I") ? this.#substitutable(this.#withArgs(name, false)) : name;
  }

  #arrayType(): Name {
    let size: Name;
    if (this.at("T")) {
      size = this.#templateParameter();
      if (!this.take("_")) this.fail();
    } else {
      const digits = this.match(/\d{0,19}_/y);
      if (digits === undefined) this.fail();
      size = constant(digits.slice(0, -1));
    }
    const element = this.#type();
    return this.#substitutable((scope) => arrayOf(element(scope), textOf(size(scope))));
  }

  #dType(): Name {
    if (this.take("p")) return this.#derived((node) => (node.kind === "pack" ? node : this.fail()));
    if (this.take("v")) {
      const size = this.match(/[1-9]\d{0,9}_/y);
      if (size === undefined) this.fail();
      return this.#derived((node) => qualified(node, `__vector(${size.slice(0, -1)})`));
    }
    if (this.take("F16b")) return constant("std::bfloat16_t");
    const float = this.match(/F\d{1,4}_/y);
    if (float !== undefined) return constant(`_Float${float.slice(1, -1)}`);
    const name = BUILTIN_D_TYPES.get(this.text[this.position] ?? "");
    if (name === undefined) this.fail();
    this.position += 1;
    return constant(name);
  }

  #functionType(suffix: string): Name {
    this.take("Y"); // extern "C"
    const result = this.#type();
    const parameters = this.#parameters(() => this.at("E") || this.at("RE") || this.at("OE"));
    const reference = this.take("R") ? " &" : this.take("O") ? " &&" : "";
    this.position += 1; // the E that ended the parameters
    return this.#substitutable((scope) =>
      functionNode(result(scope), parameters(scope).left, reference + suffix),
    );
  }

  #withArgs(name: Name, isEncoding: boolean): Name {
    if (!this.take("I")) this.fail();
    const args: Name[] = [];
    while (!this.take("E")) args.push(this.#templateArg());
    if (isEncoding) this.#templateArguments = args;
    return lazy((scope) => withArguments(name(scope), nodesOf(args, scope)));
  }

  #templateArg(): Name {
    return this.nested(() => {
      if (this.take("L")) return this.#literal();
      if (this.take("XadL_Z")) {
        const name = this.#encoding(false);
        if (!this.take("EE")) this.fail();
        return lazy((scope) => {
          const text = textOf(name(scope));
          return text.includes("::") ? this.fail() : makeNode(`&(${text})`);
        });
      }
      if (this.take("XT")) {
        this.position -= 1; // an expression that is just a parameter, as in enable_if<B>
        const parameter = this.#templateParameter();
        return this.take("E") ? parameter : this.fail();
      }
      if (!this.take("J")) return this.#type();
      const elements: Name[] = [];
      while (!this.take("E")) elements.push(this.#templateArg());
      return lazy((scope) => packNode(nodesOf(elements, scope)));
    });
  }

  #literal(): Name {
    if (this.take("_Z")) {
      const name = this.#encoding(false);
      return this.take("E") ? name : this.fail();
    }
    const start = this.position;
    const type = this.#type();
    const code = this.text.slice(start, this.position);
    const value = this.match(/n?\w*?(?=E)/y);
    if (value === undefined) this.fail();
    this.position += 1;
    const withType = (text: string): Name => lazy((scope) => makeNode(`(${textOf(type(scope))})${text}`));
    if (/^[fdeg]$/.test(code)) return withType(`[${value}]`);
    if (!/^n?\d*$/.test(value) || (value === "" && code !== "Dn")) this.fail();
    if (code === "b" && (value === "0" || value === "1")) return constant(value === "1" ? "true" : "false");
    const digits = value.replace("n", "-");
    const suffix = LITERAL_SUFFIXES.get(code);
    return suffix === undefined ? withType(digits) : constant(digits + suffix);
  }

  #templateParameter(): Name {
    const code = this.match(/T\d{0,6}_/y);
    if (code === undefined) this.fail();
    const index = code === "T_" ? 0 : Number(code.slice(1, -1)) + 1;
    return this.#inLambda ? constant(`auto:${index + 1}`) : lazy((scope) => argumentOf(scope, index));
  }

  #substitution(): Name {
    const code = this.match(/S(?:[0-9A-Z]{0,6}_|[absiod])/y);
    if (code === undefined) this.fail();
    const standard = STANDARD_SUBSTITUTIONS.get(code.slice(1));
    if (standard) return constant(standard[0], standard[1]);
    const index = code === "S_" ? 0 : Number.parseInt(code.slice(1, -1), 36) + 1;
    return this.#substitutions[index] ?? this.fail();
  }

  #substitutable(name: Name): Name {
    const remembered = lazy(name);
    this.#substitutions.push(remembered);
    return remembered;
  }
}

interface FunctionName {
  readonly name: Name;
  /** Functions made from templates are mangled with their result type. */
  readonly hasResult: boolean;
  /** ` const` and the like, behind the parameters. */
  readonly suffix: string;
}

function withResult(result: NameNode, declared: string): string {
  if (result.kind === "function" || result.right !== "") return `${result.left}${declared}${result.right}`;
  return `${result.left} ${declared}`;
}
