// Plain JavaScript that any Node can read: everything after it is TypeScript and needs Node 24.
// `npm run` puts node_modules/.bin first, where the platform package brings Node 24 along; a platform
// without such a package (macOS) has to bring its own.
const wanted = 24
const found = process.versions.node

if (Number(found.split('.')[0]) < wanted) {
  const own = process.platform + '-' + process.arch
  process.stderr.write(
    [
      'Skein is developed with Node ' + wanted + ' or newer; this is Node ' + found + '.',
      'npm brings Node ' +
        wanted +
        ' along on linux-x64, linux-arm64 and win32-x64 (yours: ' +
        own +
        ').',
      'There: run `npm ci` without --omit=optional, then use `npm run` or `npm test`, not plain `node`.',
      'Elsewhere: install Node ' +
        wanted +
        ' (https://nodejs.org, nvm, fnm, mise, Homebrew) and try again.',
      '',
    ].join('\n'),
  )
  process.exit(1)
}
