import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ownEnv, Running, tempFolder, type Ended } from '../../cli/test/kit.ts'
import { pty, Terminal } from '../../cli/test/terminal/terminal.ts'
import { packageName } from './templates.ts'

const bin = join(import.meta.dirname, '..', 'bin', 'create-skein.js')

/** Runs the command without a terminal, in a folder of its own. */
function create(
  args: readonly string[],
  at: { cwd?: string; env?: Record<string, string> } = {},
): Promise<Ended> {
  const { cwd = tempFolder(), env = {} } = at
  return new Running([bin, ...args], { cwd, program: process.execPath, env }).ended
}

describe('without a terminal', () => {
  test('--yes asks nothing; the folder is ready, and only two commands are printed', async () => {
    const cwd = tempFolder()
    const { code, stdout, stderr } = await create(['--yes'], { cwd })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout.match(/^ {2}\S.*$/gm)).toEqual(['  cd skein-app && npm install', '  npm run dev'])
    const project = join(cwd, 'skein-app')
    expect(readdirSync(project)).toEqual(
      expect.arrayContaining(['.env', '.env.example', '.gitignore']),
    )
    expect(existsSync(join(project, '_gitignore'))).toBe(false)
    expect(statSync(join(project, '.env')).mode & 0o777).toBe(0o600)
    expect(readdirSync(project)).not.toContain('node_modules')
    expect(readdirSync(project)).not.toContain('.git')
  })

  test('every served project has the Dockerfile of the package skein, and tells asking from handing over', async () => {
    const cwd = tempFolder()
    const deploy = join(import.meta.dirname, '../../cli/deploy')
    for (const template of ['chat', 'worker', 'backoffice']) {
      await create([template, '--template', template], { cwd })
      const read = (name: string): string => readFileSync(join(cwd, template, name), 'utf8')
      for (const name of ['Dockerfile', '.dockerignore'])
        expect(read(name)).toBe(readFileSync(join(deploy, name), 'utf8'))
      for (const name of ['.env', '.skein', 'secrets'])
        expect(read('.dockerignore').split('\n')).toContain(name)
      expect(read('AGENTS.md')).toMatch(
        /\*\*Ask\*\* another agent.*`tools: \[asSubagent\(librarian\)\]`/,
      )
      expect(read('AGENTS.md')).toMatch(/\*\*Hand the conversation over\*\*.*`exposeAsTool: true`/)
    }
  })

  test.each([
    [[], 'The folder is missing', '[--template <name>]'],
    [['app'], '--template is missing', '[--yes]'],
    [
      ['app', '--template', 'chart'],
      'There is no template "chart".',
      'chat, worker, backoffice, library',
    ],
    [['a', 'b', '--yes'], 'Give one folder, not a b.', '[folder]'],
    [['app', '--templat', 'chat'], "Unknown option '--templat'.", '--template <name>'],
    [
      ['app', '--template'],
      "Option '-t, --template <value>' argument missing.",
      '--template <name>',
    ],
  ])('%j is refused with what to type', async (args, what, hint) => {
    const cwd = tempFolder()
    const { code, stdout, stderr } = await create(args, { cwd })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    const [first, second] = stderr.split('\n')
    expect(first).toContain(what)
    expect(second).toContain(hint)
    expect(readdirSync(cwd)).toEqual(['node_modules'])
  })

  test('a folder that is not empty is left as it is; a new repository counts as empty', async () => {
    const cwd = tempFolder()
    mkdirSync(join(cwd, 'app', '.git'), { recursive: true })
    writeFileSync(join(cwd, 'app', 'mine.txt'), 'mine')
    const refused = await create(['app', '--yes'], { cwd })
    expect(refused.code).toBe(2)
    expect(refused.stderr).toMatch(
      /^error: The folder app is not empty: it has mine\.txt\. \[FOLDER_NOT_EMPTY\]\n/,
    )
    expect(readdirSync(join(cwd, 'app'))).toEqual(['.git', 'mine.txt'])
    const file = await create([join('app', 'mine.txt'), '--yes'], { cwd })
    expect(file.stderr).toMatch(/^error: app\/mine\.txt is a file\. /)

    mkdirSync(join(cwd, 'new', '.git'), { recursive: true })
    const here = await create(['.', '-t', 'library'], { cwd: join(cwd, 'new') })
    expect(here.stdout.match(/^ {2}\S.*$/gm)).toEqual(['  npm install', '  npm start'])
    expect(JSON.parse(readFileSync(join(cwd, 'new', 'package.json'), 'utf8')).name).toBe('new')
  })

  test('a folder that may not be written', async ({ skip }) => {
    skip(process.getuid?.() === 0, 'the superuser may write into every folder')
    const cwd = tempFolder()
    chmodSync(cwd, 0o500)
    const { code, stderr } = await create(['app', '--yes'], { cwd })
    expect(code).toBe(1)
    expect(stderr).toContain('The project cannot be written into app')
  })

  test('the words of other package managers, and a flag that npm has kept to itself', async () => {
    const env = {
      npm_config_user_agent: 'pnpm/10.1.0 npm/? node/v24',
      npm_config_template: 'worker',
    }
    const { stdout } = await create(['my app'], { env })
    expect(stdout).toContain('one model writes, another reviews')
    expect(stdout.match(/^ {2}\S.*$/gm)).toEqual([
      '  cd "my app" && pnpm install',
      '  pnpm run dev',
    ])
  })

  test('--help lists every template', async () => {
    const { code, stdout } = await create(['--help'])
    expect(code).toBe(0)
    for (const name of ['chat', 'worker', 'backoffice', 'library'])
      expect(stdout).toContain(` ${name} `)
  })
})

test('every folder gets a name that npm accepts and that none of its dependencies has', () => {
  const manifest = { name: '', dependencies: { skein: '1.0.0', a: '1.0.0' } }
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 300 }), (folder) => {
      const name = packageName(folder, manifest)
      expect(name).toMatch(/^[a-z0-9][a-z0-9._-]{0,213}$/)
      expect(name).not.toBe('node_modules')
      expect(Object.keys(manifest.dependencies)).not.toContain(name)
    }),
  )
  expect(packageName('skein', manifest)).toBe('skein-app')
  expect(packageName('My App!', manifest)).toBe('my-app')
})

describe.skipIf(typeof pty === 'string')('at a terminal', { timeout: 30_000 }, () => {
  test('asks where and what, and says why a folder cannot be taken', async () => {
    const cwd = tempFolder()
    mkdirSync(join(cwd, 'taken', 'x'), { recursive: true })
    const terminal = new Terminal([], { cwd, bin })
    await terminal.until('In which folder?')
    terminal.type('taken\r')
    await terminal.until('is not empty')
    terminal.type(`${'\u007f'.repeat(5)}mine\r`)
    await terminal.until('Which template?')
    terminal.type('\u001b[B\r')
    await terminal.until('cd mine && npm install')
    expect(await terminal.ended).toBe(0)
    expect(existsSync(join(cwd, 'mine', 'agents', 'slogan.ts'))).toBe(true)
  })

  test('Ctrl-C creates nothing', async () => {
    const cwd = tempFolder()
    const terminal = new Terminal(['mine'], { cwd, bin, env: ownEnv() as Record<string, string> })
    await terminal.until('Which template?')
    terminal.type('\u0003')
    await terminal.until('Nothing was created.')
    expect(await terminal.ended).toBe(130)
    expect(existsSync(join(cwd, 'mine'))).toBe(false)
  })
})
