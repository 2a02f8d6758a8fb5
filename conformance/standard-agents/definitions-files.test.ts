import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const definitions = new URL('../../packages/runtime/src/index.ts', import.meta.url).href

test('SA-02 two files that define one name are both named', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'skein-sa-'))
  try {
    await mkdir(join(folder, 'agents'))
    for (const file of ['first', 'second']) {
      const agent = `{ name: 'desk', sideA: { prompt: 'p' } }`
      await writeFile(join(folder, 'agents', `${file}.mjs`), `export default ${agent}`)
    }
    // In a Node of its own, since a test runner imports modules in its own way.
    const script = `
      import { discover } from '${definitions}'
      await discover(${JSON.stringify(folder)}).catch(({ code, message }) => {
        process.stdout.write(JSON.stringify({ code, message }))
      })`
    const path = join(folder, 'load.mjs')
    await writeFile(path, script)
    const { stdout } = await promisify(execFile)(process.execPath, [
      '--conditions=@skein/source',
      path,
    ])
    expect(JSON.parse(stdout)).toMatchObject({
      code: 'DEFINITION_INVALID',
      message: expect.stringMatching(/"desk" \(agents\/first\.mjs and agents\/second\.mjs\)/),
    })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
