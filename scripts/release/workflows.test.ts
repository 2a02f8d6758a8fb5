import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parseDocument } from 'yaml'
import { readJson, root } from '../workspace.ts'

interface Step {
  readonly uses?: string
  readonly run?: string
}
interface Workflow {
  readonly on: unknown
  readonly permissions?: Readonly<Record<string, string>>
  readonly jobs: Readonly<
    Record<
      string,
      {
        readonly 'timeout-minutes'?: number
        readonly permissions?: Readonly<Record<string, string>>
        readonly steps: readonly Step[]
      }
    >
  >
}

const folder = join(root, '.github', 'workflows')

describe.each(readdirSync(folder))('%s', (file) => {
  function read(): Workflow {
    const document = parseDocument(readFileSync(join(folder, file), 'utf8'))
    expect([...document.errors, ...document.warnings]).toEqual([])
    return document.toJS() as Workflow
  }

  test('reads only, ends in time, and runs what exists', async () => {
    const { on, permissions, jobs } = read()
    const { scripts } = readJson(join(root, 'package.json')) as { scripts: Record<string, string> }
    expect(on).toBeTruthy()
    expect(permissions).toEqual({ contents: 'read' })
    for (const { steps, 'timeout-minutes': minutes, permissions: own } of Object.values(jobs)) {
      expect(minutes).toBeLessThanOrEqual(120)
      // The one permission to write: a token by which npm knows the workflow.
      for (const [name, value] of Object.entries(own ?? {}))
        expect([name, value]).toEqual([name, name === 'id-token' ? 'write' : 'read'])
      for (const { uses, run } of steps) {
        expect([uses, run].filter((one) => one !== undefined)).toHaveLength(1)
        if (uses !== undefined) expect(uses).toMatch(/^actions\/[\w-]+@v\d+$/)
        if (run === undefined) continue
        // The name of a branch or tag is text of others: in a script it would be a program.
        expect(run).not.toContain('${{')
        const [program = '', file = ''] = run.split(' ')
        const command = program === 'node' ? file : program
        const script = /^npm run ([\w:-]+)/.exec(run)?.[1]
        if (script === undefined) expect(existsSync(join(root, command))).toBe(true)
        else expect(Object.keys(scripts)).toContain(script)
      }
    }
  })
})
