/**
 * Renews the help texts in docs/commands/*.md: each page has one between ```text and ```, as `kpack help COMMAND` prints it.
 * With `--check` it only says which pages are not up to date.
 */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const check = process.argv.includes("--check");
for (const file of readdirSync("docs/commands")) {
  const path = `docs/commands/${file}`;
  const page = readFileSync(path, "utf8");
  const help = execFileSync(process.execPath, ["src/cli/main.ts", "help", file.replace(/\.md$/, "")], {
    encoding: "utf8",
  });
  const renewed = page.replace(
    /<!-- help -->\n```text\n[\s\S]*?```/,
    () => `<!-- help -->\n\`\`\`text\n${help.trimEnd()}\n\`\`\``,
  );
  if (renewed === page) continue;
  if (!check) writeFileSync(path, renewed);
  else {
    process.stderr.write(`${path} does not have the current help text: run node scripts/command-pages.ts\n`);
    process.exitCode = 1;
  }
}
