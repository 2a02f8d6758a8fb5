import { SkeinError } from '@skein/base'

/** Replaces the Node version of `fileLog` on platforms without a file system. It always rejects. */
export async function fileLog(_options: unknown): Promise<never> {
  throw new SkeinError('A log in files needs Node, or a platform with its file system.', {
    code: 'PLATFORM_UNSUPPORTED',
    hint: 'Use memoryLog() from @skein/governance/audit, or a journal over the storage you have.',
  })
}

/** Replaces the Node version of `verifyLogFolder`. It always rejects. */
export const verifyLogFolder: (dir: string, options: unknown) => Promise<never> = fileLog

/** Replaces the Node version of `filePayloads`. It always throws. */
export function filePayloads(_options: unknown): never {
  throw new SkeinError('Payloads in files need Node, or a platform with its file system.', {
    code: 'PLATFORM_UNSUPPORTED',
    hint: 'Use memoryPayloads(), or a PayloadStore over the storage you have.',
  })
}
