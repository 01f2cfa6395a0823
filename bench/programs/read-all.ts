/** Decodes every kernel of an archive with the library and prints how many bytes they are. */
import { openArchive, openFile } from "rocm-kpack/node";

const [path = ""] = process.argv.slice(2);
await using archive = await openArchive(await openFile(path));
let bytes = 0;
for await (const kernel of archive.readKernels({ reuseMemory: true })) bytes += kernel.bytes.length;
console.log(JSON.stringify({ kernels: archive.entries.length, bytes }));
