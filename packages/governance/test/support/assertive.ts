import type { Governor, Run } from '../../src/index.ts'

/**
 * A governor whose `run` and `resume` throw when an `expect` in the body failed. Otherwise such a failure
 * would only end the run, like any error of the body, and the test would pass.
 */
export function assertive(inner: Governor): Governor {
  const failed: unknown[] = []
  const checked =
    <T>(body: (run: Run) => Promise<T>) =>
    async (run: Run): Promise<T> => {
      try {
        return await body(run)
      } catch (error) {
        if (error instanceof Error && error.name === 'AssertionError') failed.push(error)
        throw error
      }
    }
  const orFailed = async <T>(work: Promise<T>): Promise<T> => {
    const result = await work
    if (failed.length > 0) throw failed.pop()
    return result
  }
  const own: Pick<Governor, 'run' | 'resume'> = {
    run: (task, given, body) => orFailed(inner.run(task, given, checked(body))),
    resume: (id, task, body, options) => orFailed(inner.resume(id, task, checked(body), options)),
  }
  return new Proxy(inner, {
    get: (target, key): unknown => {
      if (key === 'run' || key === 'resume') return own[key]
      const value: unknown = Reflect.get(target, key, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}
