import type { Source } from "../source/source.ts";

/**
 * Where an archive is written. Bytes are appended; what was written can be patched.
 * Disposing of a sink that was not committed throws its bytes away.
 */
export interface Sink extends AsyncDisposable {
  /** Path, for messages. */
  readonly name: string;
  /** Offset of the next byte. */
  readonly position: number;
  /** Appends. The bytes may be changed once the call has resolved. */
  write(bytes: Uint8Array): Promise<void>;
  /** Overwrites bytes that were written before. */
  patch(offset: number, bytes: Uint8Array): Promise<void>;
  /** What was written so far, as a source, to check it before `commit`. Dispose of it before committing. */
  reopen(): Promise<Source>;
  /** Makes the bytes appear under their name. */
  commit(): Promise<void>;
}
