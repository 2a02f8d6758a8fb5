/** `npm run add-user -- ada`: adds a user with a new password, and prints it once. */
import { randomBytes } from 'node:crypto'
import { openUsers } from './users.ts'

const [name] = process.argv.slice(2)
if (!name) {
  console.error('Name the user: npm run add-user -- ada')
  process.exit(2)
}
const password = randomBytes(12).toString('base64url')
await openUsers(process.env['USERS_FILE'] ?? '.skein/users.json').add(name, password)
console.log(`${name} signs in with the password ${password}`)
