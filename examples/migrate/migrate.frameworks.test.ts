import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RunningVendorServer } from '@skein/ai/testing'
import { run } from '../../scripts/workspace.ts'
import { startScriptedVendor } from './vendor.ts'

/** The pages of docs/migrate: a program of the other framework and ours, against the same scripted vendor. */
const printed = [
  'Order O-7 is on its way, Ada.',
  'waits for a person: refund {"order":"O-7"}',
  'Done, Ada: order O-7 is refunded.',
].join('\n')

let vendor: RunningVendorServer
beforeAll(async () => {
  vendor = await startScriptedVendor()
})
afterAll(() => vendor.close())

async function outputOf(file: string): Promise<{ code: number; output: string }> {
  const { code, output } = await run('node', ['--conditions=@skein/source', file], {
    quiet: true,
    timeoutMs: 60_000,
    env: {
      OPENAI_BASE_URL: vendor.baseUrls.openai,
      OPENAI_API_KEY: 'sk-none',
      MASTRA_TELEMETRY_DISABLED: '1',
      NO_COLOR: '1',
    },
  })
  return { code, output: output.trim() }
}

describe('ours', () => {
  test.for(['ours-library.ts', 'ours-runtime.ts'])('%s', { timeout: 70_000 }, async (file) => {
    expect(await outputOf(join(import.meta.dirname, file))).toEqual({ code: 0, output: printed })
  })
})

describe('theirs prints the same', () => {
  test.for(['ai-sdk.ts', 'langgraph.ts', 'mastra.ts', 'openai-agents.ts'])(
    '%s',
    { timeout: 70_000 },
    async (file) => {
      expect(await outputOf(join(import.meta.dirname, 'theirs', file))).toEqual({
        code: 0,
        output: printed,
      })
    },
  )
})
