/** Adds many items to a list. Spreading them over the arguments of `push` fails from about a hundred thousand on. */
export function append<Item>(list: Item[], items: Iterable<Item>): void {
  for (const item of items) list.push(item);
}
