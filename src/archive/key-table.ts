/**
 * An open-addressing hash table from keys to their indexes. It grows with what is added, never by what a file claims to
 * hold. A slot has index + 1, or 0 when it is empty.
 */
export class KeyTable {
  slots: Uint32Array = new Uint32Array(1024);
  /** By index: the key's hash, to move it when the table grows. */
  #hashes: Uint32Array = new Uint32Array(512);
  #count = 0;

  get mask(): number {
    return this.slots.length - 1;
  }

  /**
   * Adds the key with this hash under `index`, the next one, unless it is there: then returns the index it has.
   * @param isSame whether the key with another index is the same
   */
  add(hash: number, index: number, isSame: (other: number) => boolean): number | undefined {
    if (this.#count * 2 >= this.slots.length) this.#grow();
    let slot = hash & this.mask;
    for (let other = this.slots[slot] ?? 0; other !== 0; other = this.slots[slot] ?? 0) {
      if (this.#hashes[other - 1] === hash && isSame(other - 1)) return other - 1;
      slot = (slot + 1) & this.mask;
    }
    this.slots[slot] = index + 1;
    this.#hashes[index] = hash;
    this.#count += 1;
    return undefined;
  }

  #grow(): void {
    const hashes = new Uint32Array(this.slots.length);
    hashes.set(this.#hashes.subarray(0, this.#count));
    this.#hashes = hashes;
    this.slots = new Uint32Array(this.slots.length * 2);
    for (let index = 0; index < this.#count; index++) {
      let slot = (hashes[index] ?? 0) & this.mask;
      while (this.slots[slot] !== 0) slot = (slot + 1) & this.mask;
      this.slots[slot] = index + 1;
    }
  }
}
