/** The form of a binary key: `/` as separator; a writer turns `\` into it. */
export function normalizeBinaryKey(key: string): string {
  return key.replaceAll("\\", "/");
}

/** Splits `lib/a.so#3` into the path and the wrapper's index; keys of older archives have none. */
export function splitBinaryKey(key: string): { readonly path: string; readonly index: number | undefined } {
  const match = /^(.*)#(\d{1,9})$/s.exec(key);
  return match ? { path: match[1] ?? "", index: Number(match[2]) } : { path: key, index: undefined };
}
