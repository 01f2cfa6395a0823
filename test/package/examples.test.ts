import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, globSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { kpack, PROJECT } from "../support/run-kpack.ts";
import { tempFolder } from "../support/temp-folder.ts";

interface Example {
  readonly place: string;
  readonly code: string;
}

function examplesOf(file: string): readonly Example[] {
  const text = readFileSync(join(PROJECT, file), "utf8");
  const source = file.endsWith(".ts")
    ? [...text.matchAll(/\/\*\*[\s\S]*?\*\//g)]
        .map(([comment]) => comment.replace(/^ *\* ?/gm, ""))
        .join("\n")
    : text;
  return [...source.matchAll(/^```ts\n([\s\S]*?)^```/gm)]
    .map(([, code = ""], index) => ({ place: `${file}, example ${index + 1}`, code }))
    .filter(({ code }) => /from "rocm-kpack(?:\/node)?"/.test(code));
}

const documents = [...globSync("docs/**/*.md", { cwd: PROJECT }), "README.md"].filter((file) =>
  existsSync(join(PROJECT, file)),
);
const sources = globSync("src/**/*.ts", { cwd: PROJECT });

describe("examples", () => {
  const examples = [...sources.toSorted(), ...documents.toSorted()].flatMap(examplesOf);

  it(`in comments and documents compile (${examples.length})`, (context) => {
    assert.ok(examples.length >= 5);
    const folder = tempFolder(context);
    symlinkSync(join(PROJECT, "node_modules"), join(folder, "node_modules"));
    writeFileSync(join(folder, "package.json"), '{"type":"module"}');
    for (const [index, { code }] of examples.entries())
      writeFileSync(join(folder, `example-${index + 1}.ts`), `${code}\nexport {};\n`);
    const config = {
      extends: join(PROJECT, "tsconfig.json"),
      compilerOptions: {
        noUnusedLocals: false,
        allowImportingTsExtensions: true,
        rewriteRelativeImportExtensions: false,
        paths: {
          "rocm-kpack": [join(PROJECT, "src/index.ts")],
          "rocm-kpack/node": [join(PROJECT, "src/node.ts")],
        },
        types: ["node"],
        typeRoots: [join(PROJECT, "node_modules/@types")],
      },
      include: [join(folder, "*.ts")],
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
    const tsc = join(PROJECT, "node_modules/.bin/tsc");
    const { status, stdout } = spawnSync(tsc, ["--noEmit", "-p", folder], { encoding: "utf8", cwd: folder });
    const named = stdout.replaceAll(
      /example-(\d+)\.ts/g,
      (_, index: string) => examples[Number(index) - 1]?.place ?? index,
    );
    assert.equal(status, 0, named);
  });
});

describe("documents name only what exists", () => {
  it("commands and their options", async () => {
    const helps = new Map<string, string>();
    const helpOf = async (verb: string): Promise<string> => {
      const known = helps.get(verb);
      if (known !== undefined) return known;
      const { stdout } = await kpack(verb === "" ? ["--help"] : [verb, "--help"]);
      helps.set(verb, stdout);
      return stdout;
    };
    const verbs = new Set(
      [...(await helpOf("")).matchAll(/^ {2}(\w+)(?: \[options\]| \[command\])/gm)].map(
        ([, verb]) => verb ?? "",
      ),
    );
    const wrong: string[] = [];
    for (const file of documents) {
      const text = readFileSync(join(PROJECT, file), "utf8");
      // In code: fenced lines, and spans between backquotes.
      const fenced = [...text.matchAll(/^```(?:\w*)\n([\s\S]*?)^```/gm)].flatMap(([, block = ""]) =>
        block.replaceAll("\\\n", " ").split("\n"),
      );
      const spans = [...text.replace(/^```[\s\S]*?^```/gm, "").matchAll(/`([^`\n]+)`/g)].map(
        ([, span = ""]) => span,
      );
      for (const line of [...fenced, ...spans]) {
        for (const [, verb = "", rest = ""] of line.matchAll(/(?:^|[ /;&|(])kpack ([a-z]+)\b([^|;&#]*)/g)) {
          if (!verbs.has(verb)) wrong.push(`${file}: kpack ${verb}`);
          else
            for (const [option] of rest.matchAll(/(?<=\s)--[a-z][a-z-]*/g))
              if (!(await helpOf(verb)).includes(option)) wrong.push(`${file}: kpack ${verb} ${option}`);
        }
      }
    }
    assert.deepEqual(wrong, []);
  });
});
