#!/usr/bin/env node
/** The `kpack` command: checks the Node version before anything is loaded that an old one cannot run. */
import os from "node:os";

const NEEDED = [24, 6] as const;
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);

if (major < NEEDED[0] || (major === NEEDED[0] && minor < NEEDED[1])) {
  process.stderr.write(
    `kpack: this needs Node ${NEEDED.join(".")} or later, and this is ${process.versions.node}.\n` +
      "Install a newer Node (https://nodejs.org), or run: npx -p node@24 -p rocm-kpack kpack\n",
  );
  process.exitCode = 2;
} else {
  // Compression runs in libuv's threads, 4 unless said otherwise before the first of them starts.
  process.env["UV_THREADPOOL_SIZE"] ??= String(Math.max(4, os.availableParallelism() + 1));
  const { run } = await import("./program.ts");
  const status = await run(process.argv.slice(2));
  process.exitCode = status;
  // Interrupted: a kernel that is just being compressed is not waited for.
  if (status > 128) {
    const { removeUnfinishedFiles } = await import("../sink/file-sink.node.ts");
    await removeUnfinishedFiles();
    process.exit();
  }
}
