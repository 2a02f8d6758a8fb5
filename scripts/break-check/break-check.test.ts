import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { copyWorkspace } from '../workspace-copy.ts'
import type { WorkspaceCopy } from '../workspace-copy.ts'
import { breakages } from './breakages.ts'
import { runBreakage } from './run-breakage.ts'

// Each runs a whole command, so all of them run only in the deep suite; one shows that the way works.
const chosen = process.env['SKEIN_DEEP']
  ? breakages
  : breakages.filter(({ name }) => name === 'a failing test')

describe('the commands notice what is broken', () => {
  let copy: WorkspaceCopy
  beforeAll(() => {
    copy = copyWorkspace()
  })
  afterAll(() => copy.remove(), 60_000)

  test.each(chosen)('$name', { timeout: 120_000 }, async (breakage) => {
    expect(await runBreakage(breakage, copy)).toEqual({
      name: breakage.name,
      noticed: true,
      output: '',
    })
  })
})
