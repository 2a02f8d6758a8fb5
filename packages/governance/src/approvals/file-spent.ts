import { SkeinError } from '@skein/base'

/** Replaces the Node version of `fileSpent` on platforms without a file system. It always throws. */
export function fileSpent(_options: unknown): never {
  throw new SkeinError('A store of spent tokens in files or SQLite needs Node.', {
    code: 'PLATFORM_UNSUPPORTED',
    hint: 'Implement SpentStore over the storage you have: one atomic "insert if absent".',
  })
}

/** Replaces the Node version of `sqliteSpent`. It always throws. */
export const sqliteSpent: (options: unknown) => never = fileSpent
