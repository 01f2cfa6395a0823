/**
 * The one rule of all commands: 0 the answer is yes, 1 the answer is no (the input is bad, there are findings, nothing
 * was found, things differ), 2 it could not be answered (wrong usage, a file that cannot be read or written).
 */
export type ExitStatus = 0 | 1 | 2;
