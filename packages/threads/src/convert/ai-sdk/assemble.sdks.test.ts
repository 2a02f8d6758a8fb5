import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { accepted, arbitraryChunk, assemble } from '../../../test/arbitrary-chunk.ts'
import { plain } from '../../../test/plain.ts'
import { realRead, refusedChunk } from '../../../test/real-chat.ts'
import type { UIMessageChunk } from './types.ts'

const numRuns = process.env['SKEIN_DEEP'] ? 2000 : 150

describe('the assembler', () => {
  test('agrees with the real reader on any stream, and refuses what it refuses', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(arbitraryChunk, { maxLength: 14 }), async (body) => {
        const chunks: UIMessageChunk[] = [
          { type: 'start', messageId: 'm', messageMetadata: { from: 'start' } },
          ...body,
          // The last chunk makes the real reader show its final state.
          { type: 'finish', finishReason: 'stop', messageMetadata: { to: 'finish' } },
        ]
        expect(await refusedChunk(chunks)).toBeUndefined()
        const real = await realRead(chunks).catch(() => 'refused')
        const ours = ((): unknown => {
          try {
            return plain(assemble(chunks).message)
          } catch (error) {
            expect(error).toMatchObject({ code: 'UI_CHUNK_ORPHAN' })
            return 'refused'
          }
        })()
        expect(ours).toEqual(real)
      }),
      { seed: 5, numRuns },
    )
  }, 60_000)

  test('agrees with the real reader on long streams in which everything has its start', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(arbitraryChunk, { minLength: 20, maxLength: 60 }), async (body) => {
        const chunks: UIMessageChunk[] = [
          { type: 'start', messageId: 'm' },
          { type: 'start-step' },
          ...accepted(body),
          { type: 'finish', messageMetadata: { to: 'finish' } },
        ]
        expect(plain(assemble(chunks).message)).toEqual(await realRead(chunks))
      }),
      { seed: 6, numRuns },
    )
  }, 60_000)
})
