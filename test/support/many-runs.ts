/**
 * Runs many commands in one process, since starting one for each takes most of the time: reads a JSON array of
 * argument lists from stdin, writes one of `{status, stdout, stderr}` to stdout.
 */
import { readFileSync } from "node:fs";
import { run } from "../../src/cli/program.ts";
import { parseJson } from "./parse-json.ts";

const lists = parseJson<readonly (readonly string[])[]>(readFileSync(0, "utf8"));
process.stdout.setMaxListeners(0);
process.stderr.setMaxListeners(0);
const write = process.stdout.write.bind(process.stdout);
const results: { readonly status: number; readonly stdout: string; readonly stderr: string }[] = [];
for (const args of lists) {
  const texts = ["", ""];
  for (const [index, stream] of [process.stdout, process.stderr].entries()) {
    stream.write = (data: string | Uint8Array, ...rest: readonly unknown[]): boolean => {
      texts[index] += typeof data === "string" ? data : new TextDecoder().decode(data);
      for (const callback of rest) if (typeof callback === "function") callback();
      return true;
    };
  }
  const status = await run(args);
  results.push({ status, stdout: texts[0] ?? "", stderr: texts[1] ?? "" });
}
write(JSON.stringify(results));
