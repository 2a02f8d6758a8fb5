import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'

/**
 * The people who may sign in: a file with a salted hash of each password. `npm run add-user -- ada` adds one. If you have
 * an identity provider or users of your own, let `check` ask there.
 */
export interface Users {
  /** Whether this is the password of the user. After ten wrong ones in a row the name has to wait. */
  check(name: string, password: string): Promise<boolean>
  has(name: string): boolean
  /** Adds a user, or changes the password of one. */
  add(name: string, password: string): Promise<void>
}

const MAX_FAILURES = 10
const WAIT_MS = 15 * 60_000

export function openUsers(file: string): Users {
  const failures = new Map<string, { count: number; at: number }>()
  const read = (): Record<string, string> =>
    existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>) : {}

  return {
    async check(name, password) {
      const { count = 0, at = 0 } = failures.get(name) ?? {}
      if (count >= MAX_FAILURES && Date.now() - at < WAIT_MS) return false
      const users = read()
      const known = Object.hasOwn(users, name) ? users[name] : undefined
      // A name that does not exist takes as long as one that does, so that names cannot be found by measuring.
      const [salt = '', hash = ''] = (known ?? `${NO_SALT}:${NO_SALT}`).split(':')
      const isRight = timingSafeEqual(await hashOf(password, salt), Buffer.from(hash, 'hex'))
      if (isRight) failures.delete(name)
      else if (known !== undefined) failures.set(name, { count: count + 1, at: Date.now() })
      return isRight && known !== undefined
    },
    has: (name) => Object.hasOwn(read(), name),
    async add(name, password) {
      const salt = randomBytes(32).toString('hex')
      const hash = (await hashOf(password, salt)).toString('hex')
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
      const text = JSON.stringify({ ...read(), [name]: `${salt}:${hash}` }, null, 2)
      writeFileSync(file, `${text}\n`, { mode: 0o600 })
    },
  }
}

const NO_SALT = '0'.repeat(64)

/** Slow on purpose (about 50 ms), so that stolen hashes do not give the passwords away. */
function hashOf(password: string, salt: string): Promise<Buffer> {
  return promisify<string, string, number, Buffer>(scrypt)(password, salt, 32)
}
