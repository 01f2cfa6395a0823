import {
  argumentOf,
  arrayOf,
  constant,
  functionNode,
  lazy,
  makeNode,
  memberPointer,
  type Name,
  type NameNode,
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
  STANDARD_SUBSTITUTIONS,
} from "./demangle-tables.ts";

const QUALIFIERS: ReadonlyMap<string, string> = new Map([
  ["K", "const"],
  ["V", "volatile"],
  ["r", "restrict"],
]);

export interface FunctionName {
  readonly name: Name;
  /** Functions made from templates are mangled with their result type. */
  readonly hasResult: boolean;
  /** ` const` and the like, behind the parameters. */
  readonly suffix: string;
}

/** The part that understands types, template arguments and substitutions. Names in them are the other part's. */
export abstract class TypeDemangler extends NameScanner {
  protected readonly substitutions: Name[] = [];
  /** The template arguments of the innermost function's own name, which `T_` and its like refer to. */
  protected templateArguments: readonly Name[] | undefined;
  protected inLambda = false;

  protected abstract encoding(isOutermost: boolean): Name;
  protected abstract parameters(isEnd: () => boolean): Name;
  protected abstract name(isEncoding: boolean): FunctionName;
  protected abstract sourceName(): string;

  protected type(): Name {
    return this.nested(() => {
      const qualifiers = this.match(/r?V?K?/y) ?? "";
      if (qualifiers !== "") {
        const inner = this.type();
        const words = [...QUALIFIERS].filter(([code]) => qualifiers.includes(code)).map(([, word]) => word);
        return this.substitutable((scope) => words.reduce(qualified, inner(scope)));
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
    if (this.take("u")) return this.substitutable(constant(this.sourceName()));
    if (this.take("U")) {
      const name = constant(this.sourceName());
      const word = this.at("I") ? this.withArgs(name, false) : name;
      const inner = this.type();
      return this.substitutable((scope) => qualified(inner(scope), textOf(word(scope))));
    }
    if (this.take("M")) {
      const owner = this.type();
      const member = this.type();
      return this.substitutable((scope) => memberPointer(owner(scope), member(scope)));
    }
    if (this.take("A")) return this.#arrayType();
    if (this.at("T")) return this.#perhapsTemplate(this.substitutable(this.templateParameter()));
    if (this.at("S") && !this.at("St")) return this.#perhapsTemplate(this.substitution());
    if (this.take("D")) return this.#dType();
    if (/[NZS\d]/.test(this.text[this.position] ?? "")) return this.substitutable(this.name(false).name);
    this.fail();
  }

  #derived(derive: (node: NameNode) => NameNode): Name {
    const inner = this.type();
    return this.substitutable((scope) => derive(inner(scope)));
  }

  #perhapsTemplate(name: Name): Name {
    return this.at("I") ? this.substitutable(this.withArgs(name, false)) : name;
  }

  #arrayType(): Name {
    let size: Name;
    if (this.at("T")) {
      size = this.templateParameter();
      if (!this.take("_")) this.fail();
    } else {
      const digits = this.match(/\d{0,19}_/y);
      if (digits === undefined) this.fail();
      size = constant(digits.slice(0, -1));
    }
    const element = this.type();
    return this.substitutable((scope) => arrayOf(element(scope), textOf(size(scope))));
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
    const result = this.type();
    const parameters = this.parameters(() => this.at("E") || this.at("RE") || this.at("OE"));
    const reference = this.take("R") ? " &" : this.take("O") ? " &&" : "";
    this.position += 1; // the E that ended the parameters
    return this.substitutable((scope) =>
      functionNode(result(scope), parameters(scope).left, reference + suffix),
    );
  }

  protected withArgs(name: Name, isEncoding: boolean): Name {
    if (!this.take("I")) this.fail();
    const args: Name[] = [];
    while (!this.take("E")) args.push(this.templateArg());
    if (isEncoding) this.templateArguments = args;
    return lazy((scope) => withArguments(name(scope), nodesOf(args, scope)));
  }

  protected templateArg(): Name {
    return this.nested(() => {
      if (this.take("L")) return this.#literal();
      if (this.take("XadL_Z")) {
        const name = this.encoding(false);
        if (!this.take("EE")) this.fail();
        return lazy((scope) => {
          const text = textOf(name(scope));
          return text.includes("::") ? this.fail() : makeNode(`&(${text})`);
        });
      }
      if (this.take("XT")) {
        this.position -= 1; // an expression that is just a parameter, as in enable_if<B>
        const parameter = this.templateParameter();
        return this.take("E") ? parameter : this.fail();
      }
      if (!this.take("J")) return this.type();
      const elements: Name[] = [];
      while (!this.take("E")) elements.push(this.templateArg());
      return lazy((scope) => packNode(nodesOf(elements, scope)));
    });
  }

  #literal(): Name {
    if (this.take("_Z")) {
      const name = this.encoding(false);
      return this.take("E") ? name : this.fail();
    }
    const start = this.position;
    const type = this.type();
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

  protected templateParameter(): Name {
    const code = this.match(/T\d{0,6}_/y);
    if (code === undefined) this.fail();
    const index = code === "T_" ? 0 : Number(code.slice(1, -1)) + 1;
    return this.inLambda ? constant(`auto:${index + 1}`) : lazy((scope) => argumentOf(scope, index));
  }

  protected substitution(): Name {
    const code = this.match(/S(?:[0-9A-Z]{0,6}_|[absiod])/y);
    if (code === undefined) this.fail();
    const standard = STANDARD_SUBSTITUTIONS.get(code.slice(1));
    if (standard) return constant(standard[0], standard[1]);
    const index = code === "S_" ? 0 : Number.parseInt(code.slice(1, -1), 36) + 1;
    return this.substitutions[index] ?? this.fail();
  }

  protected substitutable(name: Name): Name {
    const remembered = lazy(name);
    this.substitutions.push(remembered);
    return remembered;
  }
}
