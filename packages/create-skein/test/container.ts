import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, matchesGlob, relative, resolve } from 'node:path'
import { onTestFinished } from 'vitest'
import { Running } from '../../cli/test/kit.ts'

/** Whether a daemon that builds images runs here. */
export const hasDocker: boolean =
  spawnSync('docker', ['info'], { stdio: 'ignore', timeout: 10_000 }).status === 0

/** What an image would start: its files, the environment and the command. */
export interface BuiltImage {
  readonly workdir: string
  readonly env: Readonly<Record<string, string>>
  readonly command: readonly string[]
  readonly healthCommand: readonly string[]
  /** Where a path of the image is on this machine. */
  pathOf(path: string): string
}

interface Stage {
  readonly root: string
  workdir: string
  env: Record<string, string>
}

/**
 * Does what `docker build` would do with a Dockerfile, without a container: each stage is a folder, in which the steps
 * run one after the other. Images to begin with are this machine, whose Node and npm are used.
 */
export async function buildWithoutDocker(
  folder: string,
  machine: Readonly<Record<string, string>>,
): Promise<BuiltImage> {
  const root = mkdtempSync(join(tmpdir(), 'skein-image-'))
  chmodSync(root, 0o755)
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
  const stages = new Map<string, Stage>()
  let stage: Stage = { root, workdir: '/', env: {} }
  const words = { entrypoint: [] as string[], cmd: [] as string[], health: [] as string[] }
  const pathOf = (path: string, { root: base, workdir } = stage): string =>
    join(base, resolve(workdir, path))

  for (const [name, rest] of stepsOf(readFileSync(join(folder, 'Dockerfile'), 'utf8')))
    switch (name) {
      case 'FROM': {
        const [, label = 'last'] = / AS (\w+)$/.exec(rest) ?? []
        stage = { root: join(root, label), workdir: '/', env: {} }
        mkdirSync(stage.root)
        stages.set(label, stage)
        break
      }
      case 'WORKDIR':
        stage.workdir = resolve(stage.workdir, rest)
        mkdirSync(pathOf('.'), { recursive: true })
        break
      case 'ENV':
        for (const [, key = '', value = ''] of rest.matchAll(/(\w+)=(\S+)/g))
          stage.env[key] = value.replace(/(?<=^|:)\/data/, pathOf('/data'))
        break
      case 'COPY': {
        const [, from, sources = ''] = /^(?:--from=(\w+) )?(.+)$/.exec(rest)!
        const paths = sources.split(' ')
        const target = pathOf(paths.pop()!)
        for (const path of paths)
          if (from !== undefined)
            cpSync(pathOf(path, stages.get(from)), target, {
              recursive: true,
              verbatimSymlinks: true,
            })
          else copyContext(folder, path, target)
        break
      }
      case 'RUN': {
        // Owners can be given to files only by root.
        const owned = process.getuid?.() === 0 ? rest : rest.replaceAll(/ -[og] \d+/g, '')
        const line = owned.replaceAll(/(?<= )\/data/g, pathOf('/data'))
        const env = { ...machine, ...stage.env }
        const running = new Running(['-c', line], { cwd: pathOf('.'), program: 'sh', env })
        const { code, stdout, stderr } = await running.ended
        if (code !== 0) throw new Error(`RUN ${rest} ended with ${code}:\n${stdout}\n${stderr}`)
        break
      }
      case 'ENTRYPOINT':
        words.entrypoint = JSON.parse(rest) as string[]
        break
      case 'CMD':
        words.cmd = JSON.parse(rest) as string[]
        break
      case 'HEALTHCHECK':
        words.health = JSON.parse(rest.slice(rest.indexOf('['))) as string[]
        break
      case 'USER':
      case 'VOLUME':
      case 'EXPOSE':
      case 'STOPSIGNAL':
        break
      default:
        throw new Error(`The Dockerfile has a step that this test does not know: ${name}`)
    }
  const last = stage
  return {
    workdir: pathOf('.'),
    env: { ...machine, ...last.env },
    command: [...words.entrypoint, ...words.cmd],
    healthCommand: words.health,
    pathOf: (path) => pathOf(path, last),
  }
}

/** The steps of a Dockerfile, without comments, each on one line. */
function stepsOf(text: string): readonly (readonly [name: string, rest: string])[] {
  return text
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const space = line.indexOf(' ')
      return [line.slice(0, space), line.slice(space + 1).trim()]
    })
}

/** Copies a file or folder of the project, without what .dockerignore names. */
function copyContext(folder: string, path: string, target: string): void {
  const ignored = readFileSync(join(folder, '.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  const source = join(folder, path)
  cpSync(source, path === '.' ? target : join(target, path), {
    recursive: true,
    filter: (file) => {
      const [first = ''] = relative(folder, file).split('/')
      return !ignored.some((pattern) => matchesGlob(first, pattern))
    },
  })
}
