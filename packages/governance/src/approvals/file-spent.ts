import { SkeinError } from '@skein/base'

/** Takes the place of the Node version on platforms without files, and throws. */
export function fileSpent(_options: unknown): never {
  throw new SkeinError('A store of spent tokens in files or SQLite needs Node.', {
    code: 'PLATFORM_UNSUPPORTED',
    hint: 'Implement SpentStore over the storage you have: one atomic "insert if absent".',
  })
}

/** As `fileSpent`. */
export const sqliteSpent: (options: unknown) => never = fileSpent
