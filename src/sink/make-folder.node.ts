import { mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Makes a folder and those above it that are missing. Node's own `recursive` never returns where the system says that
 * the folder above is missing though it is there, as in `/proc`.
 */
export async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT" && dirname(path) !== path && !(await isFolder(dirname(path)))) {
      await makeFolder(dirname(path));
      await mkdir(path);
      return;
    }
    if (!(await isFolder(path))) throw error;
  }
}

async function isFolder(path: string): Promise<boolean> {
  return await stat(path).then(
    (info) => info.isDirectory(),
    () => false,
  );
}
