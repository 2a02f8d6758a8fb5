import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { skein, tempFolder } from './kit.ts'

test('a command below a project uses its store; one without a store makes none to read it', async () => {
  const cwd = tempFolder()
  const below = join(cwd, 'src', 'deep')
  mkdirSync(below, { recursive: true })
  const [empty, list, denied] = await Promise.all([
    skein(['inbox'], { cwd: below }),
    skein(['thread', 'list', '--json'], { cwd: below }),
    skein(['deny', 'x1', '--reason', 'No'], { cwd: below }),
  ])
  expect(empty).toMatchObject({ code: 0, stdout: '' })
  expect(empty.stderr).toContain(`There is no store in ${below} or above it.`)
  expect(list).toMatchObject({ code: 0, stdout: '{"threads":[]}\n' })
  expect(denied).toMatchObject({ code: 1 })
  expect(existsSync(join(below, '.skein'))).toBe(false)

  const ran = await skein(['run', 'refunds', 'Refund O-7'], { cwd })
  expect(ran.code).toBe(3)
  expect(ran.stderr).toContain('has no agents/, so the examples of Skein are used')
  const inbox = await skein(['inbox'], { cwd: below })
  expect(inbox.stdout).toContain('refund {"order":"O-7"')
  expect(existsSync(join(below, '.skein'))).toBe(false)
}, 60_000)
