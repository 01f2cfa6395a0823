/**
 * Everything of the portable part, with Node's codecs filled in, files as sources and sinks, and whole operations.
 */
export * from "./index.ts";
export { openArchive } from "./archive/open-archive.node.ts";
export { builtInSchemes } from "./scheme/built-in-schemes.node.ts";
export { nodeCodecs } from "./codec/node-codecs.node.ts";
export { createFile } from "./sink/file-sink.node.ts";
export { openFile } from "./source/file-source.node.ts";
