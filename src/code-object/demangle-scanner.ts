import { NotUnderstood } from "./demangle-node.ts";

/** Deeper than any compiler's output, and far from the end of the stack. */
const DEEPEST = 200;

/** A cursor over a mangled name. */
export class NameScanner {
  protected readonly text: string;
  protected position = 0;
  #depth = 0;

  constructor(text: string) {
    this.text = text;
  }

  /** Runs a parser that may come back here. */
  protected nested<Result>(parse: () => Result): Result {
    if (++this.#depth > DEEPEST) this.fail();
    const result = parse();
    this.#depth -= 1;
    return result;
  }

  protected at(code: string): boolean {
    return this.text.startsWith(code, this.position);
  }

  protected take(code: string): boolean {
    if (!this.at(code)) return false;
    this.position += code.length;
    return true;
  }

  /** @param pattern sticky */
  protected match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.position;
    const text = pattern.exec(this.text)?.[0];
    this.position += text?.length ?? 0;
    return text;
  }

  protected fail(): never {
    throw new NotUnderstood(`at ${this.position}`);
  }
}
