// The scripts of the live page and of an episode's page by ESLint's recommended rules; types are tsc's business (tsconfig.json).

import js from '@eslint/js';
import globals from 'globals';

export default [
  js.configs.recommended,
  { languageOptions: { ecmaVersion: 2022, globals: globals.browser, sourceType: 'module' } },
];
