import { SkeinError } from '@skein/base'

/** Takes the place of the Node version on platforms without files, and throws. */
export async function fileLog(_options: unknown): Promise<never> {
  throw new SkeinError('A log in files needs Node, or a platform with its file system.', {
    code: 'PLATFORM_UNSUPPORTED',
    hint: 'Use memoryLog() from @skein/governance/audit, or a journal over the storage you have.',
  })
}

/** As `fileLog`. */
export const verifyLogFolder: (dir: string, options: unknown) => Promise<never> = fileLog

/** As `fileLog`, without waiting. */
export function filePayloads(_options: unknown): never {
  throw new SkeinError('Payloads in files need Node, or a platform with its file system.', {
    code: 'PLATFORM_UNSUPPORTED',
    hint: 'Use memoryPayloads(), or a PayloadStore over the storage you have.',
  })
}
