/** Opens an archive, gets one kernel and prints its size. */
import { openArchive, openFile } from "rocm-kpack/node";

const [path = "", binaryKey = "", target = ""] = process.argv.slice(2);
await using archive = await openArchive(await openFile(path));
console.log(JSON.stringify({ bytes: (await archive.readKernel(binaryKey, target)).length }));
