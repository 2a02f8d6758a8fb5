import { join } from 'node:path'
import { readCheckpoints } from './file-log-restore-node.ts'
import { ENTRIES_FILE, readChunks } from './log-chunks-node.ts'
import { verifyLog, type LogVerdict, type VerifyLogOptions } from './verify-log.ts'

/** Verifies the log in a folder with the checkpoints it keeps itself, and the one you kept. */
export function verifyLogFolder(
  dir: string,
  options: Omit<VerifyLogOptions, 'checkpoints'>,
): Promise<LogVerdict> {
  const entries = readChunks(join(dir, ENTRIES_FILE))
  return verifyLog(entries, { ...options, checkpoints: readCheckpoints(dir) })
}
