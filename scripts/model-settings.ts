/** `node scripts/model-settings.ts`: writes docs/model-settings.md. */
import { writeFileSync } from 'node:fs'
import { modelSettingsPage, page } from './model-settings/model-settings.ts'

writeFileSync(page, await modelSettingsPage())
