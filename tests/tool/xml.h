/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A check that text is well-formed XML, as far as pictures of the tool go: elements nest and end,
 * attributes have quotes, and text has no character that must be written otherwise.
 */
#ifndef TESTS_TOOL_XML_H
#define TESTS_TOOL_XML_H

/* Returns NULL; or where @text, of the root element @root, is wrong first. */
const char *xml_wrong(const char *text, const char *root);

#endif
