import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Stage, type StageOptions } from './stage.ts'
import { SCENES, type DemoLine, type SceneName } from './scenes.ts'
import { CommandError } from '../terminal/command.ts'

/** How long a scene may take. It takes about a second; machines in CI may be much slower. */
const SCENE_MS = 120_000

/** What the demo plays, and where its lines go. */
export interface DemoOptions extends Omit<StageOptions, 'home'> {
  /** The scenes to play. Default: all. */
  readonly scenes?: readonly SceneName[]
  /** How long a scene may take. Default: two minutes. */
  readonly sceneMs?: number
  readonly onLine?: (line: DemoLine) => void
  /** Runs after the last scene, while the agents are still served. */
  readonly atEnd?: (agentsUrl: string) => Promise<void>
}

/**
 * Plays the demo in a temporary folder, with processes of its own. When it ends, for whatever reason, the processes have
 * ended too and the folder is gone.
 */
export async function playDemo(options: DemoOptions): Promise<readonly DemoLine[]> {
  const { scenes = Object.keys(SCENES) as SceneName[], onLine, atEnd, sceneMs = SCENE_MS } = options
  const home = mkdtempSync(join(tmpdir(), 'skein-demo-'))
  const over = new AbortController()
  const signal = AbortSignal.any([options.signal, over.signal])
  const stage = new Stage({ ...options, signal, home })
  const lines: DemoLine[] = []
  try {
    await stage.open()
    for (const name of scenes)
      for (const line of await inTime(SCENES[name](stage), { name, sceneMs, signal })) {
        lines.push(line)
        onLine?.(line)
      }
    await atEnd?.(stage.agentsUrl)
    return lines
  } finally {
    over.abort()
    await stage.closed()
    // On Windows a process that was killed may hold its files for a moment longer.
    rmSync(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }
}

/** Waits for a scene, but not beyond the end of the demo, and not for ever. */
async function inTime<Result>(
  scene: Promise<Result>,
  { name, sceneMs, signal }: { name: SceneName; sceneMs: number; signal: AbortSignal },
): Promise<Result> {
  let timer: NodeJS.Timeout | undefined
  const ended = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    timer = setTimeout(() => {
      const text = `The scene "${name}" did not end within ${sceneMs / 1000} seconds.`
      const hint = 'The machine may be busy. Run the demo again.'
      reject(new CommandError(text, { code: 'DEMO_TIMED_OUT', hint }))
    }, sceneMs)
  })
  scene.catch(() => undefined) // its error no longer matters once the demo is over
  try {
    return await Promise.race([scene, ended])
  } finally {
    clearTimeout(timer)
  }
}
