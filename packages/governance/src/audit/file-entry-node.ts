export { FileLog, fileLog, type FileLogOptions } from './file-log-node.ts'
export { verifyLogFolder } from './verify-folder-node.ts'
export { filePayloads, type ErasablePayloads } from './file-payloads-node.ts'
